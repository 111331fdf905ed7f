"""Bytes that each op must at least move: what it reads and what it writes, each tensor once."""

from __future__ import annotations

import numpy as np

from traincast.trace.dtypes import ITEM_BYTES
from traincast.trace.graph import Floats, Graph, Ints, Ragged
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.structure import by_class, once_per_structure

_SILENT = {OpKind.VIEW, OpKind.ALLOCATION}
# Ops that pick rows read as much of the table as they write; the rest of the table is left alone.
_PICKS_ROWS = {
    "aten.embedding",
    "aten.index",
    "aten.index_select",
    "aten.gather",
    "aten.take",
    "aten._unsafe_index",
}
_LABEL_LOSS = "aten.nll_loss_forward"  # reads one value a row, as the labels say
_LABEL_LOSS_BACKWARD = "aten.nll_loss_backward"  # writes zeros, and one value a row
# Ops that overwrite their first input without reading it.
_OVERWRITES = {
    "aten.copy_",
    "aten.fill_",
    "aten.zero_",
    "aten.normal_",
    "aten.uniform_",
    "aten.bernoulli_",
    "aten.random_",
}


def op_bytes(graph: Graph, batch_sizes: Ints) -> Floats:
    """One row a batch size, one column an op."""
    batches = np.asarray(batch_sizes, dtype=np.int64)
    return by_class(graph, lambda part: _touched(part).sums(tensor_bytes(part, batches)))


def tensor_bytes(graph: Graph, batch_sizes: Ints) -> Floats:
    """Bytes of the distinct elements of every tensor: an expanded dimension (stride 0) has only one."""
    counts = _distinct_elements(graph, batch_sizes)
    return counts * ITEM_BYTES[graph.tensor_dtype]


def _distinct_elements(graph: Graph, batch_sizes: Ints) -> Floats:
    dims = graph.dims(batch_sizes).astype(np.float64)
    strided = np.repeat(np.diff(graph.stride_start) > 0, np.diff(graph.dim_start))
    expanded = np.zeros(len(graph.dim_base), dtype=bool)
    expanded[strided] = (graph.stride_base == 0) & (graph.stride_slope == 0)
    dims[:, expanded] = 1
    dims = np.concatenate([dims, np.ones((len(batch_sizes), 1))], axis=1)
    counts = np.multiply.reduceat(dims, graph.dim_start[:-1], axis=1)
    counts[:, graph.dim_start[:-1] == graph.dim_start[1:]] = 1
    return counts


@once_per_structure
def _touched(graph: Graph) -> Ragged:
    """The tensors that each op reads and then those that it writes."""
    found: list[list[int]] = []
    rows = zip(op_kinds(graph), graph.op_name.tolist(), graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True)
    for kind, name, inputs, outputs in rows:
        if kind in _SILENT:
            found.append([])
            continue
        read = list(dict.fromkeys(inputs))
        if graph.names[name] in _PICKS_ROWS:
            read = [*read[1:], *outputs]
        elif graph.names[name] in _OVERWRITES or graph.names[name] == _LABEL_LOSS:
            read = read[1:]
        elif graph.names[name] == _LABEL_LOSS_BACKWARD:
            read = [read[0], *read[2:]]
        found.append(read + outputs)
    return Ragged.of(found)
