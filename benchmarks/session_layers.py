"""Layers that Justus et al. timed with `session.run`, and the host of each machine: shared by the scripts beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.hardware.host import Host
from traincast.kernels.host_fit import fit_floors, uniform_host
from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, OPTIMIZERS, ConvLayers
from traincast.kernels.layerwise.rows import DEVICES, LayerRows, read_layers
from traincast.kernels.lone_layer import Layer, lone_layer_graph

SMALLEST = 0.02  # the share of a machine's fully connected layers, by bytes, that shows its floor
LEAST_ROWS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Median of the smallest layers that run the same number of ops."""

    optimizer: str
    n_ops: int
    n_rows: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One of the machines: what the files call its GPU, and its host."""

    gpu: str
    host: Host
    floors: tuple[Floor, ...]

    def floor_s(self, optimizer: str) -> float:
        return min(floor.seconds for floor in self.floors if floor.optimizer == optimizer)


def machines(layers: Path) -> list[Machine]:
    """All six, with the call and the dispatch that their smallest fully connected layers show."""
    found = []
    for gpu in DEVICES:
        floors = _floors(read_layers(layers, "dense", gpus=[gpu]))
        n_ops, seconds = np.array([floor.n_ops for floor in floors], float), np.array([f.seconds for f in floors])
        call_s, dispatch_s = fit_floors(n_ops, seconds)
        host = uniform_host("tf1-session", call_s=call_s, dispatch_s=dispatch_s)
        found.append(Machine(gpu=gpu, host=host, floors=tuple(floors)))
    return found


def middle_host(found: list[Machine]) -> Host:
    """The medians over the machines."""
    return uniform_host(
        "tf1-session",
        call_s=float(np.median([machine.host.call_s for machine in found])),
        dispatch_s=float(np.median([machine.host.forward_dispatch_s for machine in found])),
    )


def layer_of(rows: LayerRows, number: int) -> tuple[Layer, str | None, int]:
    """A row as a layer, its optimizer (None: forward only) and its batch size."""
    layers = rows.layers
    optimizer = OPTIMIZERS[layers.optimizer[number]].lower()
    activation = ACTIVATIONS[layers.activation[number]]
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
        dims = {"channels_in": int(layers.dim_in[number]), "channels_out": int(layers.dim_out[number])}
        layer = Layer(**dims, activation=activation)
    return layer, None if optimizer == "none" else optimizer, int(layers.batch[number])


def _floors(rows: LayerRows) -> list[Floor]:
    size = rows.layers.forward_bytes
    small = rows.take(size <= np.quantile(size, SMALLEST))
    floors = []
    for code, optimizer in enumerate(OPTIMIZERS):
        for is_active in (False, True):
            chosen = np.flatnonzero((small.layers.optimizer == code) & ((small.layers.activation > 0) == is_active))
            if len(chosen) >= LEAST_ROWS:
                layer, name, _ = layer_of(small, int(chosen[0]))
                n_ops = lone_layer_graph(layer, name).n_ops
                seconds = float(np.median(small.median_s[chosen]))
                floors.append(Floor(optimizer=optimizer, n_ops=n_ops, n_rows=len(chosen), seconds=seconds))
    return floors
