"""A graph while it is being written: ops are appended, lifetimes and arrays come at the end.

A tensor takes its shape from one of the neutral graph, is a scalar, or has dimensions (base, slope) of its own: a
lowered step holds for every batch size just as the neutral one does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind, gather_rows
from traincast.trace.lowering.lifetimes import storage_lifetimes

SCALAR = -1  # the shape of a tensor without dimensions


@dataclass
class Program:
    """Lowered ops and tensors, and for each storage the neutral one that it stands for (-1: none)."""

    neutral: Graph
    names: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    op_name: list[int] = field(default_factory=list)
    op_attribute: list[int] = field(default_factory=list)
    op_phase: list[int] = field(default_factory=list)
    op_module: list[int] = field(default_factory=list)
    op_origin: list[int] = field(default_factory=list)  # the neutral op that this one runs for; -1: none
    op_node: list[int] = field(
        default_factory=list
    )  # ops of one autograd node release what it saved together; -1: none
    op_inputs: list[list[int]] = field(default_factory=list)
    op_outputs: list[list[int]] = field(default_factory=list)
    tensor_shape: list[int] = field(default_factory=list)  # a neutral tensor, a shape of our own after those, or SCALAR
    tensor_dtype: list[int] = field(default_factory=list)
    tensor_storage: list[int] = field(default_factory=list)
    storage_owner: list[int] = field(default_factory=list)
    storage_kind: list[int] = field(default_factory=list)
    storage_neutral: list[int] = field(default_factory=list)
    own_shapes: list[list[tuple[int, int]]] = field(default_factory=list)  # (base, slope) of each dimension
    saved: dict[int, list[int]] = field(default_factory=dict)  # what a kernel keeps for its backward, by neutral op
    main_op: dict[int, int] = field(default_factory=dict)  # neutral op -> the op that does its work, casts aside
    kept_through_forward: set[int] = field(default_factory=set)  # storages that autocast's weight cache holds
    held_until: dict[int, int] = field(default_factory=dict)  # storage -> the op up to which a function keeps it
    outlives_step: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Numbers of an array are slow to read one by one.
        graph = self.neutral
        self.n_neutral_tensors = graph.n_tensors
        self.neutral_forward: list[int] = graph.op_forward.tolist()
        self.neutral_phase: list[int] = graph.op_phase.tolist()
        self.neutral_module: list[int] = graph.op_module.tolist()
        self.neutral_name = [graph.names[name] for name in graph.op_name.tolist()]
        self.neutral_rank: list[int] = np.diff(graph.dim_start).tolist()
        self.neutral_attributes = [graph.attributes[text] for text in graph.op_attribute.tolist()]
        strided = np.repeat(np.arange(graph.n_tensors), np.diff(graph.stride_start))
        is_expanded = (graph.stride_base == 0) & (graph.stride_slope == 0)
        self.expanded = set(strided[is_expanded].tolist())

    def storage(self, kind: StorageKind = StorageKind.TEMPORARY, *, neutral: int = -1) -> int:
        self.storage_owner.append(-1)
        self.storage_kind.append(int(kind))
        self.storage_neutral.append(neutral)
        return len(self.storage_owner) - 1

    def shape(self, dims: list[tuple[int, int]]) -> int:
        """A shape that no neutral tensor has."""
        self.own_shapes.append(dims)
        return self.n_neutral_tensors + len(self.own_shapes) - 1

    def tensor(self, shape: int, dtype: int, storage: int) -> int:
        number = len(self.tensor_shape)
        self.tensor_shape.append(shape)
        self.tensor_dtype.append(dtype)
        self.tensor_storage.append(storage)
        if self.storage_owner[storage] < 0:
            self.storage_owner[storage] = number
        return number

    def like(self, tensor: int, *, dtype: int | None = None) -> int:
        """A tensor of the same shape on a storage of its own."""
        chosen = self.tensor_dtype[tensor] if dtype is None else dtype
        return self.tensor(self._dense(self.tensor_shape[tensor]), chosen, self.storage())

    def dims_of(self, shape: int) -> list[tuple[int, int]]:
        """(base, slope) of each dimension of a shape."""
        graph = self.neutral
        if shape >= self.n_neutral_tensors:
            return self.own_shapes[shape - self.n_neutral_tensors]
        rows = slice(int(graph.dim_start[shape]), int(graph.dim_start[shape + 1]))
        return list(zip(graph.dim_base[rows].tolist(), graph.dim_slope[rows].tolist(), strict=True))

    def rank_of(self, shape: int) -> int:
        """How many dimensions a shape has."""
        if shape == SCALAR:
            return 0
        own = shape - self.n_neutral_tensors
        return len(self.own_shapes[own]) if own >= 0 else self.neutral_rank[shape]

    def _dense(self, shape: int) -> int:
        """The same shape for a copy: what was expanded (stride 0) is written out."""
        return self.shape(self.dims_of(shape)) if shape in self.expanded else shape

    def again(self, tensor: int) -> int:
        """The next assignment of the same memory."""
        return self.tensor(self.tensor_shape[tensor], self.tensor_dtype[tensor], self.tensor_storage[tensor])

    def emit(
        self,
        name: str,
        inputs: list[int],
        outputs: list[int],
        *,
        phase: int,
        module: int,
        origin: int = -1,
        **more: Any,
    ) -> None:
        """Appends an op; what `more` holds are its attributes, as a dict or as JSON text under `text`.

        An op that is `alone` is an autograd node of its own: what only it needs is freed once it is done.
        """
        alone = more.pop("alone", False)
        text = more.pop("text", None) or json.dumps(more, sort_keys=True)
        self.op_name.append(self.names.setdefault(name, len(self.names)))
        self.op_attribute.append(self.attributes.setdefault(text, len(self.attributes)))
        self.op_phase.append(int(phase))
        self.op_module.append(module)
        self.op_origin.append(origin)
        self.op_node.append(self.neutral_forward[origin] if origin >= 0 and not alone else -1)
        self.op_inputs.append(inputs)
        self.op_outputs.append(outputs)

    def finish(self) -> Graph:
        """The arrays."""
        neutral, n_neutral = self.neutral, self.neutral.n_ops
        origin = np.array(self.op_origin, dtype=np.int64)
        first_op_of = np.full(n_neutral + 1, len(origin), dtype=np.int64)
        ours = np.flatnonzero(origin >= 0)
        np.minimum.at(first_op_of, origin[ours], ours)
        # A neutral op may become nothing (a request for the dtype that is there): then the next one stands for it.
        first_op_of = np.minimum.accumulate(first_op_of[::-1])[::-1]
        shapes = np.array(self.tensor_shape, dtype=np.int64)
        own_dims = np.array([dim for dims in self.own_shapes for dim in dims], dtype=np.int64).reshape(-1, 2)
        own_start = neutral.dim_start[-1] + np.cumsum([len(dims) for dims in self.own_shapes], dtype=np.int64)
        dim_start, dim_rows = gather_rows(np.concatenate([neutral.dim_start, own_start]), shapes)
        contiguous = np.full(len(self.own_shapes), neutral.stride_start[-1])
        stride_start, stride_rows = gather_rows(np.concatenate([neutral.stride_start, contiguous]), shapes)
        alloc, free = storage_lifetimes(self, first_op_of)
        forward = np.where(origin >= 0, neutral.op_forward[origin], -1)
        main_op_of = np.full(n_neutral + 1, -1, dtype=np.int64)
        main_op_of[list(self.main_op)] = list(self.main_op.values())
        return Graph(
            names=tuple(self.names),
            attributes=tuple(self.attributes),
            op_name=_ints(self.op_name),
            op_attribute=_ints(self.op_attribute),
            op_phase=_ints(self.op_phase),
            op_module=_ints(self.op_module),
            op_forward=np.where(forward >= 0, main_op_of[forward], -1),
            op_recomputed=np.where(origin >= 0, neutral.op_recomputed[origin], 0),
            op_inputs=Ragged.of(self.op_inputs),
            op_outputs=Ragged.of(self.op_outputs),
            tensor_dtype=_ints(self.tensor_dtype),
            tensor_storage=_ints(self.tensor_storage),
            dim_start=dim_start,
            dim_base=np.concatenate([neutral.dim_base, own_dims[:, 0]])[dim_rows],
            dim_slope=np.concatenate([neutral.dim_slope, own_dims[:, 1]])[dim_rows],
            stride_start=stride_start,
            stride_base=neutral.stride_base[stride_rows],
            stride_slope=neutral.stride_slope[stride_rows],
            storage_owner=_ints(self.storage_owner),
            storage_alloc=alloc,
            storage_free=free,
            storage_kind=_kinds(self, alloc, free),
        )


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _kinds(program: Program, alloc: Ints, free: Ints) -> Ints:
    """Activations are what is made before backward and still there when it begins."""
    kinds = _ints(program.storage_kind)
    backward = np.flatnonzero(_ints(program.op_phase) == Phase.BACKWARD)
    if not len(backward):
        return kinds
    kept = (kinds == StorageKind.TEMPORARY) & (alloc < backward[0]) & (free > backward[0])
    return np.where(kept, int(StorageKind.ACTIVATION), kinds)
