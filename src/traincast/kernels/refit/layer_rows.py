"""Layers that were timed alone, one `session.run` a timing: which rows show a machine's host, are scored, are fitted.

Nobody wrote down the hosts. The rows of the smallest batch show them best, so those give each machine its host and are
not scored; of the others a sample is scored, and another one, without any row of the first, is fitted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, OPTIMIZERS, ConvLayers
from traincast.kernels.layerwise.rows import LayerRows
from traincast.kernels.lone_layer import Layer
from traincast.trace.graph import Ints

HOST_BATCH = 1
N_SCORED = 1000  # rows a GPU
_N_HOST = 400
_SEED, _FIT_SEED = 0, 1


def sample(rows: LayerRows, *, n_scored: int = N_SCORED) -> LayerRows:
    """Of every GPU rows that show its host, and rows to score: the same for the same file."""
    return rows.take(_sampled(rows, n_scored))


def fit_sample(rows: LayerRows, n_fitted: int) -> LayerRows:
    """Of every GPU the rows of `sample` that show its host, and others, neither of them nor scored, to fit."""
    taken = _sampled(rows, N_SCORED)
    is_free = ~is_host(rows)
    is_free[taken] = False
    random = np.random.default_rng(_FIT_SEED)
    chosen = [taken[is_host(rows)[taken]]]
    for gpu in dict.fromkeys(rows.gpu.tolist()):
        found = np.flatnonzero((rows.gpu == gpu) & is_free)
        chosen.append(random.choice(found, min(n_fitted, len(found)), replace=False))
    return rows.take(np.concatenate(chosen))


def _sampled(rows: LayerRows, n_scored: int) -> Ints:
    random = np.random.default_rng(_SEED)
    chosen = []
    for gpu in dict.fromkeys(rows.gpu.tolist()):
        for is_wanted, most in ((is_host(rows), _N_HOST), (~is_host(rows), n_scored)):
            found = np.flatnonzero((rows.gpu == gpu) & is_wanted)
            chosen.append(random.choice(found, min(most, len(found)), replace=False))
    return np.concatenate(chosen)


def is_host(rows: LayerRows) -> NDArray[np.bool_]:
    """Rows that show the host and are not scored."""
    shown: NDArray[np.bool_] = rows.layers.batch == HOST_BATCH
    return shown


def layer_of(rows: LayerRows, number: int) -> tuple[Layer, str | None]:
    """A row as a layer and its optimizer; None: forward only."""
    layers = rows.layers
    optimizer, activation = OPTIMIZERS[layers.optimizer[number]], ACTIVATIONS[layers.activation[number]]
    if isinstance(layers, ConvLayers):
        layer = Layer(
            channels_in=int(layers.channels_in[number]),
            channels_out=int(layers.channels_out[number]),
            input_size=int(layers.input_size[number]),
            kernel=int(layers.kernel[number]),
            stride=int(layers.stride[number]),
            is_padded=bool(layers.is_padded[number]),
            has_bias=bool(layers.has_bias[number]),
            activation=activation,
        )
    else:
        dim_in, dim_out = int(layers.dim_in[number]), int(layers.dim_out[number])
        layer = Layer(channels_in=dim_in, channels_out=dim_out, activation=activation)
    return layer, None if optimizer == "none" else optimizer.lower()
