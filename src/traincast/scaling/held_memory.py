"""What a strategy adds to the memory of a device, and what sharding takes away.

The step of one device holds weights, gradients and the optimizer's state in full. DistributedDataParallel and
MirroredStrategy copy gradients into buckets of their own; servers keep the optimizer's state; ZeRO's stages leave each
device its share, and the third gathers one unit at a time, with the next one on its way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.memory.shares import Shares
from traincast.scaling.blocks import attention_outputs
from traincast.scaling.gradients import buckets_of, gradients_of, weights_over_gradients
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Graph, StorageKind
from traincast.trace.traffic import tensor_bytes


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
        return _gathered_bytes(graph)
    return 0


def _gathered_bytes(graph: Graph) -> int:
    """Two blocks of a transformer, and its tables, which stay whole through both passes; else two buckets."""
    n_blocks = len(attention_outputs(graph))
    if not n_blocks:
        largest = buckets_of(gradients_of(graph)).bytes.max(initial=0.0)
        return 2 * int(weights_over_gradients(graph) * largest)
    owners = graph.storage_owner[graph.storage_kind == StorageKind.WEIGHT]
    sizes = tensor_bytes(graph, np.array([2]))[0, owners]
    tables = sizes[sizes >= _largest_table_bytes(graph)]
    return int(tables.sum() + 2 * (sizes.sum() - tables.sum()) / n_blocks)


def _largest_table_bytes(graph: Graph) -> float:
    """Of the embeddings: an untied head is as large."""
    picks = np.array([name in ("aten.embedding", "aten.index_select") for name in graph.names], dtype=bool)
    ops = np.flatnonzero(picks[graph.op_name])
    read = graph.op_inputs.values[graph.op_inputs.start[ops]]
    weights = read[graph.storage_kind[graph.tensor_storage[read]] == StorageKind.WEIGHT]
    return float(tensor_bytes(graph, np.array([2]))[0, weights].max(initial=0.0)) or np.inf
