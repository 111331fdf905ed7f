"""Bytes that no cache holds, and memory that a step may have to ask the system for again."""

from __future__ import annotations

import numpy as np

from traincast.kernels.cpu.terms import Term
from traincast.trace.graph import Floats, Graph, Ints

_CACHED_BYTES = 8 * 2**20  # of an op's operands and results together
_LARGEST_ON_HEAP_BYTES = 32 * 2**20


def far_bytes(moved: Floats) -> Term:
    """Of each op's bytes those that did not fit the caches."""
    beyond = np.maximum(moved - _CACHED_BYTES, 0.0)
    ops = np.flatnonzero(beyond.any(axis=0))
    return Term("bytes.far", ops, beyond[:, ops])


def fresh_bytes(graph: Graph, batch_sizes: Ints) -> Floats:
    """The most that glibc, by its defaults, gives back to the system in a step and asks for in the next.

    mallopt(3): tensors of more than 32 MiB are mapped and unmapped each time. The others lie on the heap, whose free
    end is given back when it is longer than twice the largest of them. What lies below a tensor that stays is kept, so
    it may be less.
    """
    sizes = graph.storage_bytes(batch_sizes).astype(float)
    own = np.flatnonzero(graph.storage_alloc >= 0)
    large = np.where(sizes > _LARGEST_ON_HEAP_BYTES, sizes, 0.0)[:, own]
    small = sizes[:, own] - large
    rows, change = np.arange(len(batch_sizes))[:, None], np.zeros((len(batch_sizes), graph.n_ops + 1))
    np.add.at(change, (rows, graph.storage_alloc[own]), small)
    np.subtract.at(change, (rows, graph.storage_free[own]), small)
    peak = np.cumsum(change, axis=1).max(axis=1, initial=0.0)
    is_given_back = peak > 2.0 * small.max(axis=1, initial=0.0)
    return np.where(is_given_back, peak, 0.0) + large.sum(axis=1)
