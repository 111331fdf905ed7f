"""From when to when each storage of a lowered step is alive.

The neutral trace knows when each storage was really freed. Most are freed once the last op that needs them is done;
their lives follow from the lowered ops, which may need them for a shorter or longer time (a cast copy is saved for
backward in place of the original). The others are held by the model's own code, and stay held as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traincast.trace.graph import Graph, Ints, Phase, StorageKind

if TYPE_CHECKING:
    from traincast.trace.lowering.program import Program

_EXISTING = (StorageKind.WEIGHT, StorageKind.BUFFER, StorageKind.INPUT, StorageKind.OPTIMIZER_STATE)


def storage_lifetimes(program: Program, first_op_of: Ints) -> tuple[Ints, Ints]:
    """The op that allocates each storage (-1: there before), and the op before which it is freed (n_ops: never)."""
    n_ops, n_storages = len(program.op_name), len(program.storage_owner)
    storage = np.array(program.tensor_storage, dtype=np.int64)
    alloc = np.full(n_storages, n_ops, dtype=np.int64)
    last_use = np.full(n_storages, -1, dtype=np.int64)
    for rows in (program.op_inputs, program.op_outputs):
        ops, tensors = _uses(rows)
        np.maximum.at(last_use, storage[tensors], ops)
    writing, written = _uses(program.op_outputs)
    np.minimum.at(alloc, storage[written], writing)
    free = _node_end(np.array(program.op_node, dtype=np.int64))[last_use] + 1
    forward_end = int(np.argmax(np.array([*program.op_phase, Phase.BACKWARD]) >= Phase.BACKWARD))
    # What becomes of a gradient is known exactly: it may have been cast, and then only the copy stays.
    graph, neutral = program.neutral, np.array(program.storage_neutral, dtype=np.int64)
    is_held = held_by_the_model(graph) & (graph.storage_kind != StorageKind.GRADIENT)
    held = np.flatnonzero(neutral >= 0)
    held = held[is_held[neutral[held]]]
    free[held] = np.maximum(free[held], first_op_of[graph.storage_free[neutral[held]]])
    for number, op in program.held_until.items():
        free[number] = max(free[number], op + 1)
    for number in program.kept_through_forward:
        free[number] = max(free[number], forward_end)
    existing = np.isin(program.storage_kind, _EXISTING)
    alloc[existing] = -1
    free[existing] = n_ops
    free[sorted(program.outlives_step)] = n_ops
    alloc[alloc == n_ops] = -1  # never written: it can only have been there before
    return alloc, np.maximum(free, alloc + 1)


def _uses(rows: list[list[int]]) -> tuple[Ints, Ints]:
    """An op number and a tensor for everything that the ops name."""
    ops = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return ops, np.array([tensor for row in rows for tensor in row], dtype=np.int64)


def _node_end(nodes: Ints) -> Ints:
    """For each op the last one of its autograd node, whose saved tensors are released together. Index -1 gives -1."""
    is_last = np.append((nodes[:-1] < 0) | (nodes[:-1] != nodes[1:]), True)[: len(nodes)]
    last = np.flatnonzero(is_last)
    return np.append(last[np.searchsorted(last, np.arange(len(nodes)))], -1)


def held_by_the_model(neutral: Graph) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a neutral storage lives on after the autograd node that used it last."""
    last_use = np.full(neutral.n_storages, -1, dtype=np.int64)
    for ragged in (neutral.op_inputs, neutral.op_outputs):
        ops = np.repeat(np.arange(neutral.n_ops), ragged.lengths)
        np.maximum.at(last_use, neutral.tensor_storage[ragged.values], ops)
    held: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        neutral.storage_free > _node_end(neutral.op_forward)[last_use] + 1
    )
    return held
