"""A lowered graph after kernels were joined: by `torch.compile`, or by an optimizer's `fused=True`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind
from traincast.trace.kinds import FUSED, FUSED_REDUCTION, OpKind, op_kinds
from traincast.trace.lowering.inductor.kernels import Kernel, compiled_kernels
from traincast.trace.once import once_per_graph

_TRANSPARENT = {OpKind.VIEW, OpKind.ALLOCATION}


@once_per_graph
def fuse(graph: Graph) -> Graph:
    """The step as `torch.compile` runs it (Inductor, default mode), built once: kernels only, in running order."""
    return _rewritten(graph, compiled_kernels(graph))


def fuse_update(graph: Graph) -> Graph:
    """The step with its whole update as one kernel over all parameters (`fused=True` of PyTorch's optimizers)."""
    kinds = op_kinds(graph)
    is_update = graph.op_phase == Phase.OPTIMIZER
    update = [op for op in np.flatnonzero(is_update).tolist() if kinds[op] not in _TRANSPARENT]
    if len(update) <= 1:
        return graph
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    storage = graph.tensor_storage.tolist()
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    for op in update:
        for tensor in inputs[op]:
            if storage[tensor] not in written:
                read.setdefault(storage[tensor], tensor)
        written |= {storage[tensor]: tensor for tensor in outputs[op]}
    lasting = [tensor for number, tensor in written.items() if graph.storage_kind[number] != StorageKind.TEMPORARY]
    kept = [op for op in range(graph.n_ops) if not is_update[op]]
    kernels = [Kernel(op, inputs[op], outputs[op], True, False, (op,)) for op in kept]
    return _rewritten(graph, [*kernels, Kernel(update[-1], list(read.values()), lasting, False, False, tuple(update))])


def _rewritten(graph: Graph, kernels: list[Kernel]) -> Graph:
    """The same tensors and storages with these kernels for ops; what none of them touches lives for no time at all."""
    ops = np.array([kernel.op for kernel in kernels], dtype=np.int64)
    n_names, n_attributes = len(graph.names), len(graph.attributes)
    joined = np.array([not kernel.is_extern for kernel in kernels], dtype=bool)
    is_reduction = np.array([kernel.is_reduction for kernel in kernels], dtype=np.int64)
    place = np.full(graph.n_ops + 1, -1, dtype=np.int64)  # of an old op among the kernels; the last entry is no op's
    for number, kernel in enumerate(kernels):
        place[list(kernel.ops)] = number
    reads, writes = Ragged.of([k.reads for k in kernels]), Ragged.of([k.writes for k in kernels])
    alloc, free = _lifetimes(graph, reads, writes)
    return replace(
        graph,
        names=(*graph.names, FUSED, FUSED_REDUCTION),
        attributes=(*graph.attributes, "{}"),
        op_name=np.where(joined, n_names + is_reduction, graph.op_name[ops]),
        op_attribute=np.where(joined, n_attributes, graph.op_attribute[ops]),
        op_phase=graph.op_phase[ops],
        op_module=graph.op_module[ops],
        op_forward=place[graph.op_forward[ops]],
        op_recomputed=graph.op_recomputed[ops],
        op_inputs=reads,
        op_outputs=writes,
        storage_alloc=alloc,
        storage_free=free,
    )


def _lifetimes(graph: Graph, reads: Ragged, writes: Ragged) -> tuple[Ints, Ints]:
    """From the first kernel that touches a storage to the last. What was there or stays does so here as well."""
    n_kernels = len(reads)
    first = np.full(graph.n_storages, max(n_kernels - 1, 0), dtype=np.int64)
    last = np.full(graph.n_storages, -1, dtype=np.int64)
    for part in (reads, writes):
        kernel, storage = np.repeat(np.arange(n_kernels), part.lengths), graph.tensor_storage[part.values]
        np.minimum.at(first, storage, kernel)
        np.maximum.at(last, storage, kernel)
    alloc = np.where(graph.storage_alloc < 0, -1, first)
    free = np.where(graph.storage_free == graph.n_ops, n_kernels, last + 1)
    return alloc, np.maximum(free, alloc + 1)
