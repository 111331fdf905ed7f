"""How many numbers a training step keeps for its weights: parameters, gradients and states of the optimizer.

A count is not a size: what a number takes depends on the precision, and mixed precision keeps some of them twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Graph, StorageKind
from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Numbers of one kind, and the bytes that they take."""

    kind: str
    n: int
    bytes: int


def counts_of(trace: Trace, graph: Graph) -> tuple[Count, ...]:
    """`graph` is the lowered step: what holds the gradients and the states of the chosen optimizer."""
    numel = graph.numel(np.array([1]))[0, graph.storage_owner]
    sizes = graph.storage_bytes(np.array([1]))[0]

    def of(kind: str, *storage_kinds: StorageKind) -> Count:
        chosen = np.isin(graph.storage_kind, storage_kinds)
        return Count(kind=kind, n=int(numel[chosen].sum()), bytes=int(sizes[chosen].sum()))

    weights = of("parameters", StorageKind.WEIGHT)
    share = trace.n_trainable_parameters / trace.n_parameters if trace.n_parameters else 1.0
    trainable = Count(kind="of them trainable", n=trace.n_trainable_parameters, bytes=round(share * weights.bytes))
    return (
        weights,
        trainable,
        of("gradients", StorageKind.GRADIENT),
        of("optimizer states", StorageKind.OPTIMIZER_STATE),
        of("buffers", StorageKind.BUFFER),
    )
