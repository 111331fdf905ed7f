"""What a compiler such as `torch.compile` makes of a lowered graph: chains of pointwise ops become one kernel each.

Only memory traffic is saved: what one op of a chain writes and the next reads never leaves the registers, unless an op
outside needs it too (a saved activation, say). Matrix products, convolutions, batch norm, pooling and the optimizer
stay as they are. Views stay as well; a compiled step dispatches them at no cost.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from dataclasses import replace

import numpy as np

from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind
from traincast.trace.kinds import OpKind, op_kinds

FUSED = "traincast.fused_"  # it may write in place: without the mark it would be taken for a view
_POINTWISE = {OpKind.ELEMENTWISE, OpKind.DROPOUT, OpKind.FACTORY, OpKind.SOFTMAX}
_NORMS = {"aten.native_layer_norm", "aten._fused_rms_norm"}
_POINTWISE_NAMES = {"aten._to_copy", "aten.clone", "aten.sum", "aten.mean"} | _NORMS
_TRANSPARENT = {OpKind.VIEW, OpKind.ALLOCATION}

_known: weakref.WeakKeyDictionary[Graph, Graph] = weakref.WeakKeyDictionary()


def fuse(graph: Graph) -> Graph:
    """The compiled form of a lowered graph, built once."""
    if graph not in _known:
        _known[graph] = _fused(graph, _chains(graph))
    return _known[graph]


def fuse_update(graph: Graph) -> Graph:
    """The step with its whole update as one kernel over all parameters (`fused=True` of PyTorch's optimizers)."""
    kinds = op_kinds(graph)
    update = [op for op in np.flatnonzero(graph.op_phase == Phase.OPTIMIZER).tolist() if kinds[op] not in _TRANSPARENT]
    return _fused(graph, [update]) if len(update) > 1 else graph


def _chains(graph: Graph) -> list[list[int]]:
    """Runs of pointwise ops of one phase, each sharing a storage with those before it; views may lie between."""
    kinds, storage = op_kinds(graph), graph.tensor_storage.tolist()
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    chains: list[list[int]] = []
    open_chain: list[int] = []
    touched: set[int] = set()
    for op in range(graph.n_ops):
        if kinds[op] in _TRANSPARENT:
            continue
        is_pointwise = kinds[op] in _POINTWISE or graph.name_of(op) in _POINTWISE_NAMES
        own = {storage[tensor] for tensor in inputs[op] + outputs[op]}
        continues = bool(open_chain) and bool(own & touched) and graph.op_phase[op] == graph.op_phase[open_chain[0]]
        if is_pointwise and continues:
            open_chain.append(op)
            touched |= own
            continue
        chains.append(open_chain)
        open_chain, touched = ([op], own) if is_pointwise else ([], set())
    chains.append(open_chain)
    return [chain for chain in chains if len(chain) > 1]


def _fused(graph: Graph, chains: list[list[int]]) -> Graph:
    """Every chain becomes one op in the place of its last one."""
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    readers = _readers(graph, inputs)
    replaced = np.zeros(graph.n_ops, dtype=bool)
    for chain in chains:
        reads, writes = _outside(graph, chain, readers)
        replaced[chain[:-1]] = True
        inputs[chain[-1]], outputs[chain[-1]] = reads, writes
    name = graph.op_name.copy()
    name[[chain[-1] for chain in chains]] = len(graph.names)
    kept = np.flatnonzero(~replaced)
    place = np.append(np.searchsorted(kept, np.arange(graph.n_ops)), len(kept))  # of an old op in the new list
    alloc = np.where(graph.storage_alloc < 0, -1, place[np.maximum(graph.storage_alloc, 0)])
    return replace(
        graph,
        names=(*graph.names, FUSED),
        op_name=name[kept],
        op_inputs=Ragged.of([inputs[op] for op in kept]),
        op_outputs=Ragged.of([outputs[op] for op in kept]),
        storage_alloc=alloc,
        storage_free=np.maximum(place[graph.storage_free], alloc + 1),
        **{key: getattr(graph, key)[kept] for key in _BY_OP},
    )


_BY_OP = ("op_attribute", "op_phase", "op_module", "op_forward", "op_recomputed")


def _readers(graph: Graph, inputs: list[list[int]]) -> dict[int, set[int]]:
    """The ops that read each storage; a view reads nothing."""
    storage, kinds = graph.tensor_storage.tolist(), op_kinds(graph)
    readers: dict[int, set[int]] = defaultdict(set)
    for op, tensors in enumerate(inputs):
        if kinds[op] not in _TRANSPARENT:
            for tensor in tensors:
                readers[storage[tensor]].add(op)
    return readers


def _outside(graph: Graph, chain: list[int], readers: dict[int, set[int]]) -> tuple[list[int], list[int]]:
    """A tensor for each storage that the chain reads from outside, and for each that others need of it."""
    members = set(chain)
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    for op in chain:
        for tensor in _row(graph.op_inputs, op):
            storage = int(graph.tensor_storage[tensor])
            if storage not in written:
                read.setdefault(storage, tensor)
        for tensor in _row(graph.op_outputs, op):
            written[int(graph.tensor_storage[tensor])] = tensor
    needed = [
        tensor
        for storage, tensor in written.items()
        if readers[storage] - members or _is_kept(graph, storage, is_read=bool(readers[storage]))
    ]
    return list(read.values()), needed or list(written.values())[-1:]


def _is_kept(graph: Graph, storage: int, *, is_read: bool) -> bool:
    """Whether it outlives the step: weights and gradients do, and what is made at the end and read by no op."""
    is_temporary = graph.storage_kind[storage] in (StorageKind.TEMPORARY, StorageKind.ACTIVATION)
    return bool(graph.storage_free[storage] == graph.n_ops and not (is_temporary and is_read))


def _row(ragged: Ragged, op: int) -> list[int]:
    values: Ints = ragged.values[ragged.start[op] : ragged.start[op + 1]]
    return [int(value) for value in values]
