"""What a strategy adds to the memory of a device, and what sharding takes away.

The step of one device holds weights, gradients and the optimizer's state in full. DistributedDataParallel and
MirroredStrategy copy gradients into buckets of their own; servers keep the optimizer's state; ZeRO's stages leave each
device its share, and the third gathers one unit at a time, with the next one on its way.
"""

from __future__ import annotations

from dataclasses import replace

from traincast.memory.shares import Shares
from traincast.scaling.gradients import buckets_of, gradients_of, weights_over_gradients
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Graph


def shares_of(strategy: Strategy, n_devices: int, *, has_masters: bool, accumulates: bool) -> Shares:
    """What a device keeps of its own copy, where `n_devices` have the same weights. Servers have the optimizer's state.

    With fp32 masters the third stage shards these alone: 16-bit weights are made of them, a unit at a time.
    """
    whole = Shares(accumulates=accumulates)
    if strategy.kind in ("ps", "ps-async"):
        return replace(whole, optimizer_state=0.0)
    if strategy.kind != "sharded" or n_devices == 1:
        return whole
    part = 1 / (strategy.n_shards or n_devices)
    weights = 1.0 if strategy.stage < 3 else 0.0 if has_masters else part
    return replace(whole, optimizer_state=part, gradients=part if strategy.stage >= 2 else 1.0, weights=weights)


def added_bytes(strategy: Strategy, graph: Graph, n_devices: int) -> int:
    """What a device holds beside its shares: copies of the gradients, or weights that were gathered."""
    if n_devices == 1:
        return 0
    if strategy.kind in ("ddp", "mirrored"):
        return int(gradients_of(graph).total_bytes)
    if strategy.kind == "sharded" and strategy.stage >= 3:
        largest = buckets_of(gradients_of(graph)).bytes.max(initial=0.0)
        return 2 * int(weights_over_gradients(graph) * largest)
    return 0
