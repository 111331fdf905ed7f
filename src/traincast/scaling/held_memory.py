"""What a strategy adds to the memory of a device, and what sharding takes away.

The step of one device holds weights, gradients and the optimizer's state in full. DistributedDataParallel and
MirroredStrategy copy gradients into buckets of their own; servers keep the optimizer's state; ZeRO's stages leave each
device its share, and the third gathers one unit at a time, with the next one on its way.
"""

from __future__ import annotations

import numpy as np

from traincast.scaling.gradients import buckets_of, gradients_of
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Graph, StorageKind
from traincast.trace.traffic import tensor_bytes


def held_bytes_change(strategy: Strategy, graph: Graph, n_devices: int) -> int:
    """Bytes that a device holds beyond those of the same step alone; below 0 where it holds less.

    `n_devices` have the same weights. Where several share a replica, each has its part of this.
    """
    gradients = gradients_of(graph)
    if n_devices == 1 and strategy.kind not in ("ps", "ps-async"):
        return 0
    if strategy.kind in ("ddp", "mirrored"):
        return int(gradients.total_bytes)
    if strategy.kind in ("ps", "ps-async"):
        return -_bytes_of(graph, StorageKind.OPTIMIZER_STATE)
    if strategy.kind != "sharded":
        return 0
    sharded = _bytes_of(graph, StorageKind.OPTIMIZER_STATE)
    if strategy.stage >= 2:
        sharded += int(gradients.total_bytes)
    gathered = 0
    if strategy.stage >= 3:
        sharded += _bytes_of(graph, StorageKind.WEIGHT)
        gathered = 2 * int(buckets_of(gradients).bytes.max(initial=0.0))
    n_shards = strategy.n_shards or n_devices
    return gathered - sharded * (n_shards - 1) // n_shards


def _bytes_of(graph: Graph, kind: StorageKind) -> int:
    owners = graph.storage_owner[graph.storage_kind == kind]
    return int(tensor_bytes(graph, np.array([2]))[0, owners].sum())
