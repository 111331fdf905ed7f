"""Bytes that are alive while each op runs, from the lifetimes of the storages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.memory.shares import ALL_OF_IT, Shares
from traincast.trace.graph import Graph, Ints, StorageKind

N_KINDS = len(StorageKind)
_EXACT = 2.0**53


@dataclass(frozen=True, eq=False, slots=True)
class Alive:
    """A step at one batch size: how large its storages are, and how many of their bytes are alive during each op."""

    sizes: Ints
    by_op: Ints
    alloc: Ints  # when each storage begins to be

    @property
    def peak_op(self) -> int:
        """The op during which most bytes are alive; -1 where there are none."""
        return int(self.by_op.argmax()) if len(self.by_op) else -1

    @property
    def peak_bytes(self) -> int:
        return int(self.by_op.max(initial=0))


def alive_at(graph: Graph, batch_size: int, shares: Shares = ALL_OF_IT) -> Alive:
    """All that the peak of a step is worked out from, in one pass."""
    sizes = graph.storage_bytes(np.array([batch_size]))
    if not shares.is_whole:
        sizes = np.ceil(sizes * shares.of(graph)).astype(np.int64)
    alloc = shares.alloc(graph)
    return Alive(sizes[0], alive_of(graph, sizes, alloc)[0], alloc)


def alive_bytes(graph: Graph, batch_sizes: Ints) -> Ints:
    """Total bytes alive during each op: one row a batch size."""
    return alive_of(graph, graph.storage_bytes(batch_sizes))


def alive_of(graph: Graph, sizes: Ints, alloc: Ints | None = None) -> Ints:
    """The same for storages of other sizes, or that begin elsewhere: one row a case, one column a storage."""
    changes = np.zeros((len(sizes), graph.n_ops + 1), dtype=np.int64)
    _accumulate(changes, graph, sizes, np.arange(graph.n_storages), alloc)
    return np.cumsum(changes[:, :-1], axis=1)


def alive_bytes_by_kind(graph: Graph, batch_size: int, shares: Shares = ALL_OF_IT) -> Ints:
    """Bytes alive during each op: one row a StorageKind."""
    known = alive_at(graph, batch_size, shares)
    sizes = known.sizes[None, :]
    rows = np.zeros((N_KINDS, graph.n_ops), dtype=np.int64)
    for kind in StorageKind:
        changes = np.zeros((1, graph.n_ops + 1), dtype=np.int64)
        _accumulate(changes, graph, sizes, np.flatnonzero(graph.storage_kind == kind), known.alloc)
        rows[kind] = np.cumsum(changes[0, :-1])
    return rows


def peak_bytes(graph: Graph, batch_sizes: Ints) -> Ints:
    """The most bytes alive at once, for each batch size. In slices, so that a long sweep needs little memory."""
    width = max(1, 4_000_000 // max(1, graph.n_storages + graph.n_ops + len(graph.dim_base)))
    parts = [
        alive_bytes(graph, batch_sizes[start : start + width]).max(axis=1, initial=0)
        for start in range(0, len(batch_sizes), width)
    ]
    return np.concatenate(parts)


def _accumulate(changes: Ints, graph: Graph, sizes: Ints, storages: Ints, alloc: Ints | None = None) -> None:
    """Row by row: numpy adds at places that are one number much faster than at pairs."""
    begins = graph.storage_alloc if alloc is None else alloc
    start, end = np.maximum(begins[storages], 0), graph.storage_free[storages]
    for change, size in zip(changes, sizes[:, storages], strict=True):
        if float(size.sum(dtype=np.float64)) < _EXACT:  # whole numbers in doubles, which numpy adds up much faster
            change += (np.bincount(start, size, len(change)) - np.bincount(end, size, len(change))).astype(np.int64)
            continue
        np.add.at(change, start, size)
        np.subtract.at(change, end, size)
