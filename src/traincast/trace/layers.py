"""The step by module: shapes, parameters, flop and bytes of each layer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.trace.graph import Floats, Phase
from traincast.trace.traffic import op_bytes

if TYPE_CHECKING:
    from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One module and the ops that are its own, or, with `is_container`, those of all modules inside it."""

    path: str
    kind: str
    depth: int
    is_container: bool
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    n_parameters: int
    n_tied_parameters: int  # those of them that an earlier layer has too: a sum over layers leaves them out
    tied_to: tuple[str, ...]  # which layers these are
    n_layers: int
    forward_flop: float
    backward_flop: float
    forward_bytes: float
    backward_bytes: float
    flop_fraction: float  # of the flop of the whole step

    @property
    def flop(self) -> float:
        return self.forward_flop + self.backward_flop

    @property
    def moved_bytes(self) -> float:
        return self.forward_bytes + self.backward_bytes

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity: above a device's ridge the layer is bound by compute, below it by memory."""
        return self.flop / self.moved_bytes if self.moved_bytes else 0.0


def layers_of(trace: Trace, batch_size: int, *, tree: bool = False) -> tuple[Layer, ...]:
    """One row a module with ops or parameters of its own; with `tree`, the modules around them too, as totals."""
    step = _Step(trace, batch_size, _own_figures(trace, batch_size), _first_owners(trace))
    used = [number for number, module in enumerate(trace.modules) if step.own[number].any() or module.parameters]
    if not tree:
        return tuple(step.layer(number, (number,)) for number in used)
    inside: dict[int, list[int]] = {}
    chains = _ancestors(trace)
    for number in used:
        for ancestor in chains[number]:
            inside.setdefault(ancestor, []).append(number)
    return tuple(step.layer(number, tuple(inside[number])) for number in sorted(inside))


def by_kind(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Layers of the same kind added up, most flop first. Tied weights count where they come first."""
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(layer.kind, []).append(layer)
    totals = [_sum(kind, members) for kind, members in groups.items()]
    return tuple(sorted(totals, key=lambda layer: (-layer.flop, -layer.moved_bytes)))


def _sum(kind: str, members: list[Layer]) -> Layer:
    def total(name: str) -> Any:
        return sum(getattr(layer, name) for layer in members)

    return Layer(
        path="",
        kind=kind,
        depth=0,
        is_container=False,
        input_shape=(),
        output_shape=(),
        n_parameters=total("n_parameters") - total("n_tied_parameters"),
        n_tied_parameters=0,
        tied_to=(),
        n_layers=total("n_layers"),
        forward_flop=total("forward_flop"),
        backward_flop=total("backward_flop"),
        forward_bytes=total("forward_bytes"),
        backward_bytes=total("backward_bytes"),
        flop_fraction=total("flop_fraction"),
    )


def _own_figures(trace: Trace, batch_size: int) -> Floats:
    """Rows: modules. Columns: forward flop, backward flop, forward bytes, backward bytes of their own ops."""
    graph, batch = trace.graph, np.array([batch_size])
    flop, moved = trace.flop(batch)[0], op_bytes(graph, batch)[0]
    is_backward = graph.op_phase == Phase.BACKWARD
    figures = np.zeros((len(trace.modules), 4))
    for column, values in enumerate((flop, flop, moved, moved)):
        chosen = is_backward if column % 2 else ~is_backward
        np.add.at(figures[:, column], graph.op_module[chosen], values[chosen])
    return figures


def _ancestors(trace: Trace) -> list[list[int]]:
    """For each module its own number and those of all modules around it, by path."""
    number = {module.path: index for index, module in enumerate(trace.modules)}
    chains = []
    for module in trace.modules:
        parts = module.path.split(".") if module.path else []
        paths = [".".join(parts[:length]) for length in range(len(parts), -1, -1)]
        chains.append([number[path] for path in paths if path in number])
    return chains


def _first_owners(trace: Trace) -> dict[int, int]:
    """The first module that has a parameter: others that share it are tied to it."""
    found: dict[int, int] = {}
    for number, module in enumerate(trace.modules):
        for tensor in module.parameters:
            found.setdefault(tensor, number)
    return found


@dataclass(frozen=True, eq=False, slots=True)
class _Step:
    """A step by module: figures of each module's own ops, and which module has a parameter first."""

    trace: Trace
    batch_size: int
    own: Floats
    first_owner: dict[int, int]

    def layer(self, number: int, members: tuple[int, ...]) -> Layer:
        module, graph = self.trace.modules[number], self.trace.graph
        figures, total_flop = self.own[list(members)].sum(axis=0), float(self.own[:, :2].sum())
        tensors = sorted({tensor for member in members for tensor in self.trace.modules[member].parameters})
        tied = [tensor for tensor in tensors if self.first_owner[tensor] not in members]
        return Layer(
            path=module.path,
            kind=module.kind,
            depth=module.path.count(".") + 1 if module.path else 0,
            is_container=members != (number,),
            input_shape=graph.shape_of(module.input, self.batch_size) if module.input >= 0 else (),
            output_shape=graph.shape_of(module.output, self.batch_size) if module.output >= 0 else (),
            n_parameters=self._numel(tensors),
            n_tied_parameters=self._numel(tied),
            tied_to=tuple(dict.fromkeys(self.trace.modules[self.first_owner[tensor]].path for tensor in tied)),
            n_layers=len(members),
            forward_flop=float(figures[0]),
            backward_flop=float(figures[1]),
            forward_bytes=float(figures[2]),
            backward_bytes=float(figures[3]),
            flop_fraction=float(figures[:2].sum() / total_flop) if total_flop else 0.0,
        )

    def _numel(self, tensors: Iterable[int]) -> int:
        return sum(math.prod(self.trace.graph.shape_of(tensor, self.batch_size)) for tensor in tensors)
