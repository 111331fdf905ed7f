"""The order of a step: what is made once, read after it is made, and alive while it is touched."""

from __future__ import annotations

import numpy as np

from traincast.trace.graph import Graph, Ints


def broken_orders(graph: Graph) -> list[str]:
    """What of a graph, whose indices are right, cannot be in time."""
    ops = np.arange(graph.n_ops)
    written, maker = graph.op_outputs.values, np.repeat(ops, graph.op_outputs.lengths)
    made = np.full(graph.n_tensors, -1, dtype=np.int64)
    made[written] = maker
    reader, read = np.repeat(ops, graph.op_inputs.lengths), graph.op_inputs.values
    holds = {
        "outputs": len(np.unique(written)) == len(written),  # single assignment
        "inputs": bool(np.all(made[read] < reader)),
        "forward ops": bool(np.all(graph.op_forward < ops)),
        "phases": bool(np.all(np.diff(graph.op_phase) >= 0)),
        "owners": bool(np.all(graph.tensor_storage[graph.storage_owner] == np.arange(graph.n_storages))),
        "lifetimes": _is_alive(graph, reader, read) and _is_alive(graph, maker, written),
    }
    return [name for name, is_kept in holds.items() if not is_kept]


def _is_alive(graph: Graph, ops: Ints, tensors: Ints) -> bool:
    """Whether the storages of tensors are there while ops touch them."""
    storages = graph.tensor_storage[tensors]
    return bool(np.all((graph.storage_alloc[storages] <= ops) & (ops < graph.storage_free[storages])))
