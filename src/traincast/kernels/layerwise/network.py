"""A small fully connected network with ReLU units, in numpy: features in, seconds out.

The file that ships holds weights and biases with the scaling of features and target folded in, the range of each
feature in the rows it learnt from, and where it comes from. It is an .npz without pickled objects.
"""

from __future__ import annotations

import importlib.resources
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from traincast.errors import FileFormatError
from traincast.trace.graph import Floats

FOLDER = "data/kernels"


@dataclass(frozen=True, eq=False, kw_only=True)
class Network:
    """Predicts the logarithm of seconds. `low` and `high` bound the features of the rows it learnt from."""

    weights: tuple[Floats, ...]  # one matrix a layer of the network: rows are inputs
    biases: tuple[Floats, ...]
    features: tuple[str, ...]
    low: Floats
    high: Floats
    provenance: Mapping[str, Any]

    def predict_s(self, features: Floats) -> Floats:
        """Seconds for each row of features."""
        values = features
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weight + bias, 0.0)
        return np.exp((values @ self.weights[-1] + self.biases[-1])[:, 0])

    def distance_outside(self, features: Floats) -> Floats:
        """How far each row lies outside the rows learnt from: the largest excess over all features."""
        return np.maximum(np.maximum(self.low - features, features - self.high), 0.0).max(axis=1)


def fold_scaling(
    weights: Sequence[Floats], biases: Sequence[Floats], *, inputs: tuple[Floats, Floats], target: tuple[float, float]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Weights and biases for raw features and target, from those for standardised ones: (value - mean) / scale."""
    mean, scale = inputs
    folded_weights, folded_biases = [np.array(weight, dtype=float) for weight in weights], [*map(np.array, biases)]
    folded_weights[0] = folded_weights[0] / scale[:, None]
    folded_biases[0] = folded_biases[0] - mean @ folded_weights[0]
    folded_weights[-1] = folded_weights[-1] * target[1]
    folded_biases[-1] = folded_biases[-1] * target[1] + target[0]
    return tuple(folded_weights), tuple(folded_biases)


def network_bytes(network: Network) -> bytes:
    """The content of a weights file: single precision, and the same bytes for the same network."""
    arrays: dict[str, Any] = {
        "features": np.array(network.features),
        "low": network.low,
        "high": network.high,
        "provenance": np.array(json.dumps(network.provenance, indent=1)),
    }
    for number, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"weight_{number}"] = weight.astype(np.float32)
        arrays[f"bias_{number}"] = bias.astype(np.float32)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def parse_network(content: bytes, *, where: str) -> Network:
    """A network from the content of a weights file."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            n_layers = sum(name.startswith("weight_") for name in arrays.files)
            network = Network(
                weights=tuple(arrays[f"weight_{number}"].astype(float) for number in range(n_layers)),
                biases=tuple(arrays[f"bias_{number}"].astype(float) for number in range(n_layers)),
                features=tuple(arrays["features"].tolist()),
                low=arrays["low"],
                high=arrays["high"],
                provenance=json.loads(str(arrays["provenance"])),
            )
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(f"Layer network {where} cannot be read: {error}.") from None
    if not network.weights or len(network.features) != len(network.weights[0]):
        raise FileFormatError(f"Layer network {where} does not have one weight a feature.")
    return network


@lru_cache(maxsize=2)
def shipped_network(kind: str) -> Network:
    """The network that ships for "conv" or "dense"."""
    name = file_name(kind)
    content = importlib.resources.files("traincast").joinpath(FOLDER, name).read_bytes()
    return parse_network(content, where=name)


def file_name(kind: str) -> str:
    return f"layerwise_{kind}.npz"
