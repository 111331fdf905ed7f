"""What activation checkpointing would save: an estimate from lifetimes, for a step that was captured without it.

The forward pass is cut into runs of equally many ops (Chen et al. 2016, "Training Deep Nets with Sublinear Memory
Cost"). What leaves a run is kept; what stays inside is thrown away and made again when the backward pass gets there, so
that one run at a time has its activations.
"""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.memory.timeline import alive_bytes_by_kind
from traincast.trace.graph import Graph, Ints, Phase, StorageKind

_CUTS = (2, 4, 8, 16, 32, 64)


def saved_bytes(question: Question) -> int:
    """Of the peak, with the best of some numbers of runs; 0 where something else than activations makes the peak."""
    graph, micro = question.graph, question.micro_batch_size
    by_kind = alive_bytes_by_kind(graph, micro)
    alive, activations = by_kind.sum(axis=0), by_kind[StorageKind.ACTIVATION]
    kept = min(_kept_bytes(graph, micro, n_runs) for n_runs in _CUTS)
    lower = alive - np.maximum(activations - kept, 0)
    return int(alive.max(initial=0) - lower.max(initial=0))


def _kept_bytes(graph: Graph, batch_size: int, n_runs: int) -> int:
    """What is alive at the worst moment: all that crosses from run to run, and one run's own."""
    storages = np.flatnonzero(
        (graph.storage_kind == StorageKind.ACTIVATION)
        & (graph.storage_alloc >= 0)
        & (graph.op_phase[np.maximum(graph.storage_alloc, 0)] == Phase.FORWARD)
    )
    forward = np.flatnonzero(graph.op_phase == Phase.FORWARD)
    if not len(storages) or not len(forward):
        return 0
    sizes = graph.storage_bytes(np.array([batch_size]))[0][storages]
    length = -(-len(forward) // n_runs)
    place = np.searchsorted(forward, graph.storage_alloc[storages]) // length
    last = np.searchsorted(forward, _last_forward_read(graph)[storages], side="right") - 1
    crosses = last // length > place
    inside = np.bincount(place[~crosses], weights=sizes[~crosses], minlength=1)
    return int(sizes[crosses].sum() + inside.max())


def _last_forward_read(graph: Graph) -> Ints:
    """The last op of the forward pass that reads each storage; where none does, the one that made it."""
    last = graph.storage_alloc.copy()
    reader = np.repeat(np.arange(graph.n_ops), graph.op_inputs.lengths)
    is_forward = graph.op_phase[reader] == Phase.FORWARD
    np.maximum.at(last, graph.tensor_storage[graph.op_inputs.values[is_forward]], reader[is_forward])
    return last
