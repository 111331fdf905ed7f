"""The same model when it only predicts: a training step without its loss, backward pass, update and training layers.

What a model in evaluation mode leaves out is left out: dropout, a batch norm's count of batches and its statistics of
the batch, and what autograd would have kept. A model whose own code takes another path when it predicts is not seen:
capture it with mode="inference".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind
from traincast.trace.settings import Settings
from traincast.trace.trace import Module, Trace

_DROPOUT = "aten.native_dropout"
_PRODUCTS = ("aten.mul", "aten.mul_")
_IN_EVALUATION: dict[str, dict[str, bool | float]] = {  # the attribute that says so, and what it is then
    "aten.batch_norm": {"training": False},
    "traincast.attention": {"dropout_p": 0.0},
    "traincast.rnn": {"train": False},
}
_MADE_IN_STEP = (StorageKind.ACTIVATION, StorageKind.TEMPORARY, StorageKind.GRADIENT)


def forward_only(trace: Trace) -> Trace:
    """One pass of predictions. A trace that was captured in that mode stays as it is."""
    if trace.mode == "inference":
        return trace
    graph = trace.graph
    is_run, stands_for = _evaluated_ops(graph)
    ops = np.flatnonzero(is_run)
    inputs = [stands_for[row].tolist() for row in _rows(graph.op_inputs, ops)]
    outputs = _rows(graph.op_outputs, ops)
    touched = {tensor for row in (*inputs, *outputs) for tensor in row}
    modules = [_with_ends(module, stands_for, touched | _existing(graph)) for module in trace.modules]
    ends = {tensor for module in modules for tensor in (module.input, module.output) if tensor >= 0}
    owned = {parameter.tensor for parameter in trace.parameters}
    tensors = np.array(sorted(touched | ends | owned), dtype=np.int64)
    number = np.full(graph.n_tensors + 1, -1, dtype=np.int64)  # the last is that of -1, none
    number[tensors] = np.arange(len(tensors))
    table = replace(
        _selected(graph, ops, tensors, stands_for),
        op_inputs=Ragged.of([number[row].tolist() for row in inputs]),
        op_outputs=Ragged.of([number[row].tolist() for row in outputs]),
    )
    renumbered = tuple(_renumbered(module, number) for module in modules)
    result = [renumbered[0].output] if renumbered[0].output >= 0 else number[outputs[-1]].tolist()
    return replace(
        trace,
        mode="inference",
        graph=_with_lifetimes(table, renumbered, result),
        modules=renumbered,
        parameters=tuple(replace(one, tensor=int(number[one.tensor]), gradient=-1) for one in trace.parameters),
        gradient_of=np.zeros((0, 2), dtype=np.int64),
        op_call=trace.op_call[ops],
        defaults=Settings(trace.defaults.precision, "none"),
        uncosted_ops=tuple(name for name in trace.uncosted_ops if name in table.names),
    )


def _rows(ragged: Ragged, ops: Ints) -> list[list[int]]:
    rows = ragged.rows()
    return [rows[op] for op in ops.tolist()]


def _evaluated_ops(graph: Graph) -> tuple[NDArray[np.bool_], Ints]:
    """The ops that run in evaluation; and for every tensor the one in its place, which dropout would have changed.

    Beside dropout, whole or as a product with random numbers (stochastic depth), what only training needs: a batch
    norm's count of batches, and copies for the backward pass of what is overwritten.
    """
    is_run = (graph.op_phase == Phase.FORWARD) & (graph.op_recomputed == 0)
    stands_for = np.arange(graph.n_tensors)
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    ops = np.flatnonzero(is_run).tolist()
    random = _random_storages(graph, ops, outputs)
    read = {tensor for op in ops for tensor in inputs[op]}
    for op in ops:
        name, made = graph.name_of(op), outputs[op][0] if outputs[op] else -1
        kept = [tensor for tensor in inputs[op] if graph.tensor_storage[tensor] not in random]
        if name == _DROPOUT or (name in _PRODUCTS and 0 < len(kept) < len(inputs[op])):
            is_run[op], stands_for[made] = False, stands_for[kept[0]]
        elif made >= 0 and graph.tensor_storage[made] in random:
            is_run[op] = False
        elif name == "aten.add_" and graph.attributes_of(op).get("other") == 1:
            is_run[op] = graph.storage_kind[graph.tensor_storage[made]] != StorageKind.BUFFER
        elif name == "aten.clone":
            is_run[op] = made in read
    return is_run, stands_for


def _random_storages(graph: Graph, ops: list[int], outputs: list[list[int]]) -> set[int]:
    """What random masks are written to."""
    drawn = [tensor for op in ops if graph.name_of(op) == "aten.bernoulli_" for tensor in outputs[op]]
    return set(graph.tensor_storage[drawn].tolist())


def _existing(graph: Graph) -> set[int]:
    """Tensors that no op makes: weights, buffers and inputs."""
    return set(range(graph.n_tensors)) - set(graph.op_outputs.values.tolist())


def _with_ends(module: Module, stands_for: Ints, known: set[int]) -> Module:
    """What goes into a module and comes out; -1 where only training makes it."""
    first, last = (int(stands_for[tensor]) if tensor >= 0 else -1 for tensor in (module.input, module.output))
    return replace(module, input=first if first in known else -1, output=last if last in known else -1)


def _renumbered(module: Module, number: Ints) -> Module:
    first, last = (int(number[tensor]) for tensor in (module.input, module.output))
    return replace(module, input=first, output=last, parameters=tuple(number[list(module.parameters)].tolist()))


def _selected(graph: Graph, ops: Ints, tensors: Ints, stands_for: Ints) -> Graph:
    """The tables of these ops and tensors; who reads and writes what, and for how long, is filled in afterwards."""
    storages, tensor_storage, owners = _storages(graph, tensors, stands_for)
    kinds = graph.storage_kind[storages]
    names, attributes = _numbered(graph.name_of(op) for op in ops.tolist()), _numbered(_texts(graph, ops))
    dim_start, dims = _picked(graph.dim_start, tensors)
    stride_start, strides = _picked(graph.stride_start, tensors)
    nothing = np.zeros(len(ops), dtype=np.int64)
    return replace(
        graph,
        names=names[0],
        attributes=attributes[0],
        op_name=names[1],
        op_attribute=attributes[1],
        op_phase=nothing,
        op_module=graph.op_module[ops],
        op_forward=nothing - 1,
        op_recomputed=nothing,
        tensor_dtype=graph.tensor_dtype[tensors],
        tensor_storage=tensor_storage,
        dim_start=dim_start,
        dim_base=graph.dim_base[dims],
        dim_slope=graph.dim_slope[dims],
        stride_start=stride_start,
        stride_base=graph.stride_base[strides],
        stride_slope=graph.stride_slope[strides],
        storage_owner=owners,
        storage_kind=np.where(np.isin(kinds, _MADE_IN_STEP), int(StorageKind.TEMPORARY), kinds),
        storage_alloc=storages,
        storage_free=storages,
    )


def _storages(graph: Graph, tensors: Ints, stands_for: Ints) -> tuple[Ints, Ints, Ints]:
    """The storages that are left, that of every tensor as a position among them, and the tensor that owns each."""
    place = np.arange(graph.n_storages)
    for tensor in np.flatnonzero(stands_for != np.arange(graph.n_tensors)).tolist():
        place[graph.tensor_storage[tensor]] = place[graph.tensor_storage[stands_for[tensor]]]  # one after the other
    storages, number = np.unique(place[graph.tensor_storage[tensors]], return_inverse=True)
    owners = np.unique(number, return_index=True)[1]  # the first that is left, unless the owner is
    is_owner = np.isin(tensors, graph.storage_owner[storages])
    owners[number[is_owner]] = np.flatnonzero(is_owner)
    return storages, number, owners


def _numbered(texts: Iterable[str]) -> tuple[tuple[str, ...], Ints]:
    """Distinct texts, and of each which of them it is."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) for text in texts]
    return tuple(known), np.array(numbers, dtype=np.int64)


def _texts(graph: Graph, ops: Ints) -> Iterator[str]:
    """The attributes of ops, as JSON, when the model predicts."""
    for op in ops.tolist():
        changes = _IN_EVALUATION.get(graph.name_of(op))
        text = graph.attributes[graph.op_attribute[op]]
        yield text if changes is None else json.dumps({**json.loads(text), **changes}, sort_keys=True)


def _picked(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Rows of a ragged table: where each begins now, and where its values were."""
    lengths = start[rows + 1] - start[rows]
    begins = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=begins[1:])
    return begins, np.arange(begins[-1]) - np.repeat(begins[:-1], lengths) + np.repeat(start[rows], lengths)


def _with_lifetimes(graph: Graph, modules: tuple[Module, ...], result: list[int]) -> Graph:
    """Without autograd a storage is freed once the last op that touches it is done; the result stays.

    What goes into a module is held by its caller until the module returns.
    """
    alloc = np.full(graph.n_storages, -1, dtype=np.int64)
    free = np.full(graph.n_storages, graph.n_ops, dtype=np.int64)
    made = graph.storage_kind == StorageKind.TEMPORARY
    first = np.full(graph.n_storages, graph.n_ops, dtype=np.int64)
    last = np.full(graph.n_storages, -1, dtype=np.int64)
    writer = np.repeat(np.arange(graph.n_ops), graph.op_outputs.lengths)
    reader = np.repeat(np.arange(graph.n_ops), graph.op_inputs.lengths)
    written, read = graph.tensor_storage[graph.op_outputs.values], graph.tensor_storage[graph.op_inputs.values]
    np.minimum.at(first, written, writer)
    for storages, ops in ((written, writer), (read, reader)):
        np.maximum.at(last, storages, ops)
    maker = np.full(graph.n_tensors, -1, dtype=np.int64)
    maker[graph.op_outputs.values] = writer
    for module in modules:
        if module.input >= 0 and module.output >= 0:
            storage = graph.tensor_storage[module.input]
            last[storage] = max(last[storage], maker[module.output])
    alloc[made] = first[made]
    free[made] = last[made] + 1
    free[graph.tensor_storage[result]] = graph.n_ops
    return replace(graph, storage_alloc=alloc, storage_free=free)
