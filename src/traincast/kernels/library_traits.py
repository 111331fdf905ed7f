"""What library factors read of the ops of a layer timed alone: what each is to the library."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.trace.graph import Floats, Graph, Ints

CHANGE_LAYOUT, CHANGE_FILTER, PAD = "traincast.change_layout", "traincast.change_filter", "traincast.pad"
_UPDATE = "traincast.apply_"
# Passes of TensorFlow's updates over what one fused pass would move: its functors assign state by state
# (training_ops_gpu.cu.cc), and Adadelta evaluates its step twice.
_UPDATE_PASSES = {
    "sgd": 1.0,
    "momentum": 6 / 5,
    "adagrad": 7 / 5,
    "rmsprop": 10 / 7,
    "adam": 10 / 7,
    "adadelta": 12 / 7,
}
_FULL_CHANNELS = 32.0
_MOST_HALVINGS = 5.0


class Role(IntEnum):
    """What a kernel is to the library."""

    OTHER = 0
    PRODUCT = 1
    FORWARD = 2  # convolutions
    INPUT = 3
    WEIGHT = 4
    LAYOUT = 5
    FILTER = 6
    PADDING = 7
    UPDATE = 8


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Traits:
    """What the factors read of the kernels of calls, whatever the batch size: one entry a kernel."""

    role: Ints
    forward: Ints  # place of the forward convolution of the same call; its own where there is none
    halvings: Floats  # of 32 channels, where a layout is changed
    log_window: Floats  # of the window's size over 3 x 3 where the stride is 1; 0 for smaller ones
    is_strided: NDArray[np.bool_]
    log_passes: Floats  # of updates

    def select(self, chosen: NDArray[Any]) -> Traits:
        """Some whole calls."""
        kept = {field.name: getattr(self, field.name)[chosen] for field in fields(self)}
        kept["forward"] = (np.cumsum(chosen) - 1)[kept["forward"]]
        return Traits(**kept)

    @staticmethod
    def join(parts: list[Traits]) -> Traits:
        """One call after the other."""
        starts = np.cumsum([0, *(len(part.role) for part in parts[:-1])])
        joined = {field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Traits)}
        joined["forward"] = np.concatenate([part.forward + start for part, start in zip(parts, starts, strict=True)])
        return Traits(**joined)


def traits_of(graph: Graph) -> Traits:
    """Of a call, whose ops run one kernel each."""
    names, places = [graph.name_of(op) for op in range(graph.n_ops)], np.arange(graph.n_ops)
    role = np.array([_role(graph, op, name) for op, name in enumerate(names)])
    forward = np.flatnonzero(role == Role.FORWARD)
    if len(forward) > 1:
        raise InputError(f"Library factors are for one layer timed alone; this graph has {len(forward)} convolutions.")
    kernel, stride = _window(graph, int(forward[0])) if len(forward) else (1, 1)
    log_window = 2.0 * log(max(kernel / 3.0, 1.0)) if stride == 1 else 0.0
    return Traits(
        role=role,
        forward=np.full(graph.n_ops, forward[0]) if len(forward) else places,
        halvings=_halvings(graph, role),
        log_window=np.full(graph.n_ops, log_window),
        is_strided=np.full(graph.n_ops, stride > 1),
        log_passes=np.array([_log_passes(name) for name in names]),
    )


def _role(graph: Graph, op: int, name: str) -> Role:
    if name == "aten.convolution_backward":
        return Role.INPUT if graph.attributes_of(op)["output_mask"][0] else Role.WEIGHT
    return Role.UPDATE if name.startswith(_UPDATE) else _ROLES.get(name, Role.OTHER)


_ROLES = {
    "aten.mm": Role.PRODUCT,
    "aten.convolution": Role.FORWARD,
    CHANGE_LAYOUT: Role.LAYOUT,
    CHANGE_FILTER: Role.FILTER,
    PAD: Role.PADDING,
}


def _window(graph: Graph, op: int) -> tuple[int, int]:
    """Width and stride of a convolution."""
    weight = graph.op_inputs.rows()[op][1]
    return int(graph.dim_base[graph.dim_start[weight] + 3]), int(graph.attributes_of(op)["stride"][0])


def _halvings(graph: Graph, role: Ints) -> Floats:
    channels, inputs = np.full(graph.n_ops, _FULL_CHANNELS), graph.op_inputs.rows()
    for op in np.flatnonzero(role == Role.LAYOUT).tolist():
        channels[op] = graph.dim_base[graph.dim_start[inputs[op][0]] + 1]
    halvings: Floats = np.clip(np.log2(_FULL_CHANNELS / channels), 0.0, _MOST_HALVINGS)
    return halvings


def _log_passes(name: str) -> float:
    return log(_UPDATE_PASSES[name.removeprefix(_UPDATE).rstrip("_")]) if name.startswith(_UPDATE) else 0.0
