"""Data parallelism that shards what every device would otherwise hold: ZeRO's stages, of which the third is FSDP.

Stage 1 shards the optimizer's state, 2 the gradients too, 3 the weights too. Gradients are reduce-scattered while
backward goes on, each device updates its share. In stages 1 and 2 the new weights are gathered after the update; in
stage 3 every unit's weights are gathered before it runs forward and again before it runs backward, one unit ahead.

Hybrid sharding divides among `n_shards` devices; others have copies, with which each device all-reduces its shard of
the gradients after they were scattered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.scaling.gradients import buckets_of, weights_over_gradients
from traincast.scaling.groups import first_of, one_of_each
from traincast.scaling.hierarchy import Network, NetworkCost, all_gather, all_reduce, reduce_scatter
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.overlap import overlap
from traincast.scaling.strategies import CALL_S, alone
from traincast.trace.graph import Floats


def sharded(step: LocalStep, network: Network, *, stage: int, n_shards: int = 0) -> ParallelStep:
    """The step of ZeRO's stage 1, 2 or 3. Units are the buckets of DistributedDataParallel."""
    n, units = n_shards or network.n_devices, buckets_of(step.gradients)
    if network.n_devices == 1 or not len(units.bytes):
        return alone(step)
    group = first_of(network, n)
    scattered = reduce_scatter(units.bytes, group, "ring")
    gathered = all_gather(units.bytes * weights_over_gradients(step.graph), group, "ring")
    scatter_s, gather_s = scattered.seconds + CALL_S, gathered.seconds + CALL_S
    copies_bytes = 0.0
    if n < network.n_devices:
        copies = all_reduce(units.bytes / n, one_of_each(network, n), "nccl")
        scatter_s = scatter_s + copies.seconds + CALL_S
        copies_bytes = _sent(copies)
    if stage < 3:
        hidden = overlap(step, units, scatter_s)
        exposed_s = hidden.exposed_s + _exposed_gathers_s(step, gather_s)
        busy_s = hidden.communication_s + gather_s.sum()
        n_gathers = 1
    else:
        exposed_s, busy_s = _fully_sharded(step, scatter_s, gather_s)
        n_gathers = 2 * step.n_micro_steps
    sent = _sent(scattered) + copies_bytes + n_gathers * _sent(gathered)
    return replace(
        alone(step),
        optimizer_s=step.timeline.optimizer_s / n,
        update_fraction=1 / n,
        exposed_s=exposed_s,
        communication_s=busy_s,
        bytes_sent=np.full(len(step.batch_sizes), sent),
    )


def _exposed_gathers_s(step: LocalStep, gather_s: Floats) -> Floats:
    """Of the new weights, after the update or beside the first forward pass, which waits for the first unit alone."""
    if not step.gathers_ahead:
        return np.full(len(step.batch_sizes), gather_s.sum())
    forward_s = step.timeline.forward_s / step.n_micro_steps
    return gather_s[-1] + np.maximum(gather_s[:-1].sum() - forward_s, 0.0)


def _fully_sharded(step: LocalStep, scatter_s: Floats, gather_s: Floats) -> tuple[Floats, Floats]:
    """Exposed and busy seconds: the first unit's weights, what the passes do not hide, the last unit's gradients.

    The link works through the units in order while the device computes; where one of the two has more to do over the
    whole pass, it ends later by the difference. Every pass of gradient accumulation gathers anew.
    """
    timeline, passes = step.timeline, step.n_micro_steps
    gather_all_s, scatter_all_s = gather_s.sum(), scatter_s.sum()
    forward_s = (timeline.forward_s + timeline.loss_s) / passes
    backward_s = timeline.backward_s / passes
    last_forward_unit_s, last_backward_unit_s = gather_s[-1], scatter_s[-1]
    in_forward_s = last_forward_unit_s + np.maximum(gather_all_s - last_forward_unit_s - forward_s, 0.0)
    in_backward_s = last_backward_unit_s + np.maximum(
        gather_all_s + scatter_all_s - last_backward_unit_s - backward_s, 0.0
    )
    return passes * (in_forward_s + in_backward_s), np.full(
        len(step.batch_sizes), passes * (2 * gather_all_s + scatter_all_s)
    )


def _sent(cost: NetworkCost) -> float:
    return float(np.maximum(cost.inside.bytes_sent, cost.between.bytes_sent).sum())
