"""The trace: one neutral training step, for every batch size."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from traincast.trace.check import check_batch_size
from traincast.trace.dtypes import TOKEN_DTYPES
from traincast.trace.flop import op_flop
from traincast.trace.graph import Floats, Graph, Ints, Phase
from traincast.trace.layers import Layer, layers_of
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    """A module of the model: where it is, what it is, and what first went in and came out (tensor ids, -1: none)."""

    path: str
    kind: str
    input: int
    output: int
    parameters: tuple[int, ...]  # tensors of the parameters that it owns itself


@dataclass(frozen=True, eq=False, slots=True)
class Parameter:
    """A parameter: its tensor in the graph, and the tensor of its gradient (-1: frozen or unused)."""

    name: str
    tensor: int
    gradient: int
    is_trainable: bool


@dataclass(frozen=True, eq=False)
class Trace:
    """What one training step asks of a device, before a precision, an optimizer or a target is chosen."""

    name: str
    mode: str  # "train" | "inference"
    graph: Graph
    modules: tuple[Module, ...]
    parameters: tuple[Parameter, ...]
    gradient_of: Ints  # rows of (gradient tensor, the forward tensor it is the gradient of)
    op_call: Ints  # for each op the call of a public function that it is part of, -1: none
    call_functions: tuple[str, ...]  # for each call the function's name
    defaults: Settings
    assumptions: tuple[str, ...] = ()
    uncosted_ops: tuple[str, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)

    @cached_property
    def n_parameters(self) -> int:
        """Distinct parameters; tied weights count once."""
        tensors = sorted({parameter.tensor for parameter in self.parameters})
        return int(self.graph.numel(np.array([1]))[0, tensors].sum())

    @cached_property
    def n_trainable_parameters(self) -> int:
        tensors = sorted({parameter.tensor for parameter in self.parameters if parameter.is_trainable})
        return int(self.graph.numel(np.array([1]))[0, tensors].sum())

    def flop(self, batch_sizes: Ints) -> Floats:
        """Flop of every op: one row a batch size. Matrix products, convolutions and attention; an add is free."""
        return op_flop(self.graph, batch_sizes)

    def forward_flop(self, batch_size: int) -> int:
        """Flop of the forward pass and the loss. A multiply-add is 2."""
        return self._phase_flop(batch_size, (Phase.FORWARD, Phase.LOSS))

    def backward_flop(self, batch_size: int) -> int:
        """Flop of the backward pass, with what gradient checkpointing computes again."""
        return self._phase_flop(batch_size, (Phase.BACKWARD,))

    def _phase_flop(self, batch_size: int, phases: tuple[Phase, ...]) -> int:
        check_batch_size(batch_size)
        flop = self.flop(np.array([batch_size]))[0]
        return round(flop[np.isin(self.graph.op_phase, phases)].sum())

    @cached_property
    def tokens_per_sample(self) -> int | None:
        """Of a model that reads whole numbers, a row per sample: the length of a row; None of any other model."""
        first = self.modules[0].input if self.modules else -1
        if first < 0 or self.graph.tensor_dtype[first] not in TOKEN_DTYPES:
            return None
        shape = self.graph.shape_of(first, 2)
        return shape[1] if len(shape) == 2 else None

    @property
    def covered_flop_fraction(self) -> float:
        """Share of the step whose work is counted, by bytes moved: below 1, `uncosted_ops` names the rest."""
        if not self.uncosted_ops:
            return 1.0
        moved = op_bytes(self.graph, np.array([2]))[0]
        names = [number for number, name in enumerate(self.graph.names) if name in self.uncosted_ops]
        return 1.0 - float(moved[np.isin(self.graph.op_name, names)].sum() / moved.sum())

    def layers(self, batch_size: int) -> tuple[Layer, ...]:
        """One row a module that runs ops of its own."""
        check_batch_size(batch_size)
        return layers_of(self, batch_size)

    def save(self, path: str | Path) -> None:
        """Writes one compact file that `traincast.load_model` reads without torch."""
        from traincast.trace.file import write_trace

        write_trace(self, Path(path))

    def __repr__(self) -> str:
        return f"Trace({self.name!r}, {self.n_parameters:,} parameters, {self.graph.n_ops} ops, {self.mode})"

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.trace.layers import by_kind
        from traincast.units import show_bytes, show_flop, show_integer

        rows = [
            (
                kind.kind,
                show_integer(kind.n_layers),
                show_integer(kind.n_parameters),
                show_flop(kind.forward_flop),
                show_flop(kind.backward_flop),
                show_bytes(kind.moved_bytes),
            )
            for kind in by_kind(self.layers(1))
        ]
        header = ("of one sample", "layers", "parameters", "forward", "backward", "bytes moved")
        return to_notebook(repr(self), rows, header=header, notes=self.assumptions)
