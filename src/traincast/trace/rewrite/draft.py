"""A trace while ops are put in, changed and taken out. Tensors, storages and lifetimes follow at the end.

Ops go by a key that outlives their moves: an op of the trace has its number there, an op of ours a number above.
A new tensor has the shape of a known one, or dimensions each of which is a whole number or one of a known tensor, so
that it holds at every size for which the trace does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind, gather_rows
from traincast.trace.lowering.lifetimes import held_by_the_model
from traincast.trace.trace import Parameter, Trace


@dataclass(frozen=True, slots=True)
class DimOf:
    """The dimension of a known tensor: its place among all dimensions of the trace's graph."""

    row: int


Dim = int | DimOf


@dataclass(slots=True)
class DraftOp:
    """An op with names in place of numbers. `forward` is a key, as in the draft."""

    name: str
    attributes: str
    phase: int
    module: int
    inputs: list[int]
    outputs: list[int]
    forward: int = -1
    is_recomputed: bool = False
    call: int = -1


@dataclass
class Draft:
    """`order` is the step as it will run; what it does not name is gone."""

    trace: Trace
    ops: dict[int, DraftOp] = field(init=False)
    order: list[int] = field(init=False)
    call_functions: list[str] = field(init=False)
    parameters: list[Parameter] = field(init=False)
    gradient_of: list[tuple[int, int]] = field(init=False)
    tensor_dtype: list[int] = field(init=False)
    tensor_storage: list[int] = field(init=False)
    tensor_like: list[int] = field(init=False)  # a tensor of the trace, or one of `shapes` after those
    shapes: list[list[Dim]] = field(default_factory=list)
    storage_kind: list[int] = field(init=False)
    replaced: dict[int, int] = field(default_factory=dict)  # a parameter that is gone -> what stands for it
    held_until: dict[int, int] = field(default_factory=dict)  # storage -> the op after which it is let go

    def __post_init__(self) -> None:
        graph = self.trace.graph
        self.ops = _ops_of(self.trace)
        self.order = list(self.ops)
        self.call_functions = list(self.trace.call_functions)
        self.parameters = list(self.trace.parameters)
        self.gradient_of = [(gradient, forward) for gradient, forward in self.trace.gradient_of.tolist()]
        self.tensor_dtype = graph.tensor_dtype.tolist()
        self.tensor_storage = graph.tensor_storage.tolist()
        self.tensor_like = list(range(graph.n_tensors))
        self.storage_kind = graph.storage_kind.tolist()

    def storage(self, kind: StorageKind = StorageKind.TEMPORARY) -> int:
        self.storage_kind.append(int(kind))
        return len(self.storage_kind) - 1

    def tensor_as(self, tensor: int, *, storage: int | None = None) -> int:
        """A tensor of the same shape, strides and dtype on another storage."""
        return self._tensor(self.tensor_like[tensor], self.tensor_dtype[tensor], storage)

    def tensor(self, dims: list[Dim], dtype: int, *, storage: int | None = None) -> int:
        """A contiguous tensor of these dimensions."""
        self.shapes.append(dims)
        return self._tensor(self.trace.graph.n_tensors + len(self.shapes) - 1, dtype, storage)

    def _tensor(self, like: int, dtype: int, storage: int | None) -> int:
        self.tensor_dtype.append(dtype)
        self.tensor_storage.append(self.storage() if storage is None else storage)
        self.tensor_like.append(like)
        return len(self.tensor_dtype) - 1

    def dims(self, tensor: int) -> list[Dim]:
        """Those of a tensor, to be given to others."""
        graph, like = self.trace.graph, self.tensor_like[tensor]
        if like >= graph.n_tensors:
            return list(self.shapes[like - graph.n_tensors])
        return [DimOf(row) for row in range(int(graph.dim_start[like]), int(graph.dim_start[like + 1]))]

    def add(self, op: DraftOp) -> int:
        """The key of a new op, which has no place in the order yet."""
        key = len(self.ops)
        self.ops[key] = op
        return key

    def insert(self, places: dict[int, list[int]], *, after: bool = False) -> None:
        """Puts lists of keys before (or after) the ops whose keys are given."""
        order: list[int] = []
        for key in self.order:
            own = places.get(key, [])
            order += [key, *own] if after else [*own, key]
        self.order = order

    def finish(self, **changed: object) -> Trace:
        """The trace, without what no op touches any more; `changed` are other fields of it."""
        return _Finished(self).trace(changed)


def _ops_of(trace: Trace) -> dict[int, DraftOp]:
    graph = trace.graph
    columns = zip(
        graph.op_name.tolist(),
        graph.op_attribute.tolist(),
        graph.op_phase.tolist(),
        graph.op_module.tolist(),
        graph.op_inputs.rows(),
        graph.op_outputs.rows(),
        graph.op_forward.tolist(),
        (graph.op_recomputed == 1).tolist(),
        trace.op_call.tolist(),
        strict=True,
    )
    return {
        key: DraftOp(graph.names[name], graph.attributes[text], *others)
        for key, (name, text, *others) in enumerate(columns)
    }


class _Finished:
    """The arrays of a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.old = draft, draft.trace.graph
        self.ops = [draft.ops[key] for key in draft.order]
        self.place = {key: place for place, key in enumerate(draft.order)}
        made_before = set(self.old.op_outputs.values.tolist())
        touched = {tensor for op in self.ops for tensor in (*op.inputs, *op.outputs)}
        there = set(range(self.old.n_tensors)) - made_before - set(draft.replaced)
        self.tensors = sorted(touched | there)
        self.tensor_number = {tensor: number for number, tensor in enumerate(self.tensors)}
        storages = sorted({draft.tensor_storage[tensor] for tensor in self.tensors})
        self.storage_number = {storage: number for number, storage in enumerate(storages)}
        self.storages = np.array(storages, dtype=np.int64)

    def trace(self, changed: dict[str, object]) -> Trace:
        draft, number = self.draft, self.tensor_number
        trace = draft.trace
        modules = tuple(
            replace(
                module,
                input=number.get(module.input, -1),
                output=number.get(module.output, -1),
                parameters=tuple(number[draft.replaced.get(tensor, tensor)] for tensor in module.parameters),
            )
            for module in trace.modules
        )
        parameters = tuple(
            replace(
                each,
                tensor=number[draft.replaced.get(each.tensor, each.tensor)],
                gradient=number.get(each.gradient, -1),
            )
            for each in draft.parameters
        )
        pairs = [(number[g], number[f]) for g, f in draft.gradient_of if g in number and f in number]
        return replace(
            trace,
            graph=self._graph(),
            modules=modules,
            parameters=parameters,
            gradient_of=np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2),
            op_call=np.array([op.call for op in self.ops], dtype=np.int64),
            call_functions=tuple(draft.call_functions),
            **changed,  # type: ignore[arg-type]
        )

    def _graph(self) -> Graph:
        draft, ops = self.draft, self.ops
        names: dict[str, int] = {}
        attributes: dict[str, int] = {}
        inputs = Ragged.of([[self.tensor_number[tensor] for tensor in op.inputs] for op in ops])
        outputs = Ragged.of([[self.tensor_number[tensor] for tensor in op.outputs] for op in ops])
        kept = np.array(self.tensors, dtype=np.int64)
        storage_of = _ints(self.storage_number[draft.tensor_storage[tensor]] for tensor in self.tensors)
        alloc, free = self._lifetimes(inputs, outputs, storage_of)
        owner = np.full(len(self.storages), -1, dtype=np.int64)
        owner[storage_of[::-1]] = np.arange(len(storage_of))[::-1]  # the first tensor of each
        return replace(
            self.old,
            op_name=_ints(names.setdefault(op.name, len(names)) for op in ops),
            op_attribute=_ints(attributes.setdefault(op.attributes, len(attributes)) for op in ops),
            names=tuple(names),
            attributes=tuple(attributes),
            op_phase=_ints(int(op.phase) for op in ops),
            op_module=_ints(op.module for op in ops),
            op_forward=_ints(self.place.get(op.forward, -1) for op in ops),
            op_recomputed=_ints(int(op.is_recomputed) for op in ops),
            op_inputs=inputs,
            op_outputs=outputs,
            tensor_dtype=np.array(draft.tensor_dtype, dtype=np.int64)[kept],
            tensor_storage=storage_of,
            **self._shapes(kept),
            storage_owner=owner,
            storage_alloc=alloc,
            storage_free=free,
            storage_kind=self._kinds(alloc, free),
        )

    def _shapes(self, kept: Ints) -> dict[str, Ints]:
        """Dimensions and strides, row by row: those of the trace, then our own shapes, which have no strides."""
        graph, shapes = self.old, self.draft.shapes
        like = np.array(self.draft.tensor_like, dtype=np.int64)[kept]
        own = [dim for dims in shapes for dim in dims]
        own_start = graph.dim_start[-1] + np.cumsum([len(dims) for dims in shapes], dtype=np.int64)
        starts, rows = gather_rows(np.concatenate([graph.dim_start, own_start]), like)
        contiguous = np.full(len(shapes), graph.stride_start[-1])
        stride_starts, stride_rows = gather_rows(np.concatenate([graph.stride_start, contiguous]), like)
        base = _ints(dim if isinstance(dim, int) else int(graph.dim_base[dim.row]) for dim in own)
        slope = _ints(0 if isinstance(dim, int) else int(graph.dim_slope[dim.row]) for dim in own)
        return {
            "dim_start": starts,
            "dim_base": np.concatenate([graph.dim_base, base])[rows],
            "dim_slope": np.concatenate([graph.dim_slope, slope])[rows],
            "stride_start": stride_starts,
            "stride_base": graph.stride_base[stride_rows],
            "stride_slope": graph.stride_slope[stride_rows],
        }

    def _lifetimes(self, inputs: Ragged, outputs: Ragged, storage_of: Ints) -> tuple[Ints, Ints]:
        """From the first op that writes a storage to the last that touches it, or as long as the model held it."""
        n_ops, n_storages, old = len(self.ops), len(self.storages), self.old
        alloc, last = np.full(n_storages, n_ops, dtype=np.int64), np.full(n_storages, -1, dtype=np.int64)
        for rows in (inputs, outputs):
            np.maximum.at(last, storage_of[rows.values], np.repeat(np.arange(n_ops), rows.lengths))
        np.minimum.at(alloc, storage_of[outputs.values], np.repeat(np.arange(n_ops), outputs.lengths))
        free = last + 1
        known = np.flatnonzero(self.storages < old.n_storages)
        known_free, known_alloc = (part[self.storages[known]] for part in (old.storage_free, old.storage_alloc))
        held = held_by_the_model(old)[self.storages[known]]
        free[known] = np.maximum(free[known], np.where(held, self._moved()[known_free], 0))
        for storage, key in self.draft.held_until.items():
            if storage in self.storage_number:
                number = self.storage_number[storage]
                free[number] = max(free[number], self.place[key] + 1)
        there = alloc == n_ops
        there[known] |= known_alloc < 0
        alloc[there], free[there] = -1, n_ops
        return alloc, np.maximum(free, alloc + 1)

    def _moved(self) -> Ints:
        """For each op of the trace the place of the first op of ours from there on; the end for what lay at the end."""
        n_old = self.old.n_ops
        places = np.full(n_old + 1, len(self.ops), dtype=np.int64)
        for key, place in self.place.items():
            if key < n_old:
                places[key] = place
        return np.minimum.accumulate(places[::-1])[::-1]

    def _kinds(self, alloc: Ints, free: Ints) -> Ints:
        """Activations are what is made before backward and still there when it begins."""
        kinds = np.array(self.draft.storage_kind, dtype=np.int64)[self.storages]
        backward = next((place for place, op in enumerate(self.ops) if op.phase == Phase.BACKWARD), None)
        if backward is None:
            return kinds
        moving = np.isin(kinds, (StorageKind.ACTIVATION, StorageKind.TEMPORARY))
        is_kept = (alloc >= 0) & (alloc < backward) & (free > backward)
        return np.where(moving, np.where(is_kept, int(StorageKind.ACTIVATION), int(StorageKind.TEMPORARY)), kinds)


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
