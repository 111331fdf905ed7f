"""One replica of a transformer on several devices: tensor, pipeline and context parallelism.

Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): t devices of a node share every block. Their products take 1/t
of the time, and each block sums its activations twice in forward and twice in backward; nothing hides that. With
sequence parallelism (Korthikanti et al., 2022) a sum is a reduce-scatter and an all-gather, and norms and additions are
divided as well.

Pipeline parallelism (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", 2021): p stages have consecutive blocks. With m micro-batches a step lasts m slots and those that are idle
(`split.Schedule`); a slot is a forward and backward pass of the fullest stage and a send of activations each way for
each of its pieces, which the schedule waits for.

Context parallelism: each of c devices has 1/c of the positions. Ring attention (Liu et al., 2023) passes keys and
values around while attention works on those that have come; DeepSpeed-Ulysses (Jacobs et al., 2023) exchanges heads for
positions before attention and back after it.

docs/model_parallel.md says how far this was checked and what is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import StepTimeline
from traincast.scaling import collectives
from traincast.scaling.blocks import (
    activation_bytes,
    attention_outputs,
    is_divided_op,
    is_residual,
    key_value_bytes,
    storage_fraction,
)
from traincast.scaling.groups import context_network, replica_network, tensor_network
from traincast.scaling.hierarchy import Network, all_gather, all_reduce, reduce_scatter
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.split import ModelSplit
from traincast.scaling.stragglers import SPREAD, waiting_s
from traincast.scaling.strategies import CALL_S, ddp
from traincast.trace.graph import Floats, Graph, Ints, Phase

SUMS_A_PASS = 2  # of a block's activations, forward and backward each
_EXCHANGES_A_PASS = 4  # all-to-alls of a block: query, key, value, and what attention writes

DataParallel = Callable[[LocalStep, Network], ParallelStep]


@dataclass(frozen=True, eq=False, slots=True)
class Traffic:
    """Of one micro-batch in one stage: seconds that nothing hides, seconds on the links, and bytes sent."""

    exposed_s: Floats
    seconds: Floats
    bytes_sent: Floats

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.exposed_s + other.exposed_s, self.seconds + other.seconds, self.bytes_sent + other.bytes_sent
        )


def divided_times(times: OpTimes, graph: Graph, blocks_graph: Graph, split: ModelSplit) -> OpTimes:
    """Op times of one device of those that share a stage. Kernels of a smaller problem are taken to be as efficient.

    Blocks are found in `blocks_graph`, the step before a compiler joined its ops; tensors have the same numbers.
    """
    if split.tensor == split.context == 1:
        return times
    is_update = graph.op_phase == Phase.OPTIMIZER
    by_context = np.where(is_update, 1.0, 1.0 / split.context)
    if split.sequence:
        by_tensor = np.full(graph.n_ops, 1.0 / split.tensor)
    else:
        residual = is_residual(graph, attention_outputs(blocks_graph))
        by_tensor = np.where(is_divided_op(graph, residual), 1.0 / split.tensor, 1.0)
    share = by_context * by_tensor
    return replace(times, seconds=times.seconds * share, compute_s=times.compute_s * share)


_OF_UPDATE = ("optimizer_s", "update_device_s", "update_compute_s")


def stage_timeline(timeline: StepTimeline, fraction: float, *, passes_fraction: float | None = None) -> StepTimeline:
    """The step of one stage, without the bubble: `fraction` of the update, and of the passes where no other is named.

    The last stage does more of a pass than its share of the blocks: it has the head.
    """
    of_passes = fraction if passes_fraction is None else passes_fraction
    if fraction == of_passes == 1.0:
        return timeline
    names = [field.name for field in fields(timeline) if field.name != "op_log_sd"]  # a share, whatever the length
    share = {name: fraction if name in _OF_UPDATE else of_passes for name in names}
    stage = replace(timeline, **{name: share[name] * getattr(timeline, name) for name in names})
    less = fraction - of_passes  # of the update, which is a part of the device's time
    return replace(
        stage,
        device_s=stage.device_s + less * timeline.update_device_s,
        compute_s=stage.compute_s + less * timeline.update_compute_s,
    )


def model_parallel(
    split: ModelSplit,
    step: LocalStep,
    blocks_graph: Graph,
    network: Network,
    *,
    data_parallel: DataParallel = ddp,
    spread: float = SPREAD,
) -> ParallelStep:
    """The step of all devices, with `step` that of the fullest stage (`divided_times`, `stage_timeline`)."""
    reduced = data_parallel(step, replica_network(network, split))
    sizes = activation_bytes(blocks_graph, step.batch_sizes) / split.context
    n_passes = 2 if (step.graph.op_phase == Phase.BACKWARD).any() else 1
    slot_s = (reduced.forward_s + reduced.loss_s + reduced.backward_s) / step.n_micro_steps
    own = _sums(split, sizes, network, n_passes, slot_s) + _sends(split, sizes, network, n_passes, slot_s)
    own += _contexts(split, step, blocks_graph, network, n_passes)
    m, n_slots = step.n_micro_steps, split.n_slots(step.n_micro_steps)
    idle = 1.0 + (n_slots / m - 1.0) * step.usual_stage
    parallel = replace(
        reduced,
        bubble_s=(reduced.forward_s + reduced.loss_s + reduced.backward_s) * (idle - 1),
        forward_s=reduced.forward_s * idle,
        loss_s=reduced.loss_s * idle,
        backward_s=reduced.backward_s * idle,
        exposed_s=reduced.exposed_s + n_slots * own.exposed_s,
        communication_s=reduced.communication_s + m * own.seconds,
        bytes_sent=reduced.bytes_sent + m * own.bytes_sent,
    )
    waited_s = waiting_s(network.n_devices, parallel.compute_s, spread)
    return replace(parallel, exposed_s=parallel.exposed_s + waited_s)


def _sums(split: ModelSplit, sizes: Floats, network: Network, n_passes: int, slot_s: Floats) -> Traffic:
    """The activations that a tensor-parallel group adds up.

    Beside products, a gather hides behind the part that the device has, and of a scatter the last part sticks out.
    """
    if split.tensor == 1:
        return _no_traffic(sizes)
    group = tensor_network(network, split)
    parts = (
        (reduce_scatter(sizes, group), all_gather(sizes, group))
        if split.sequence
        else (all_reduce(sizes, group, "nccl"),)
    )
    times = n_passes * SUMS_A_PASS * split.stage_fraction(sizes.shape[1])
    each_s = [times * (part.seconds + CALL_S).sum(axis=1) for part in parts]
    seconds, exposed_s = sum(each_s), sum(each_s)
    if split.overlaps and split.sequence:
        exposed_s = each_s[0] / split.tensor + np.maximum(seconds - slot_s, 0.0)
    return Traffic(exposed_s, seconds, times * sum(part.inside.bytes_sent.sum(axis=1) for part in parts))


def _sends(split: ModelSplit, sizes: Floats, network: Network, n_passes: int, slot_s: Floats) -> Traffic:
    """Activations on their way to the next stage, and gradients back, for every piece of the model that a stage has.

    All stages send at once, so the slowest way counts: between nodes wherever a replica does not fit into one. With
    sequence parallelism each device of a tensor-parallel group sends its own part. With several pieces on a stage, what
    one sends goes while another computes (`overlap_p2p_comm` of Megatron-Core, which is on for this schedule alone).
    """
    if split.pipeline == 1:
        return _no_traffic(sizes)
    fits_inside = all(n % split.n_devices == 0 for n in network.placement)
    part = sizes.max(axis=1) / (split.tensor if split.sequence else 1)
    port = network.inside_port
    if not fits_inside:  # all devices of a node send through its one port
        port = replace(
            network.node_port, bytes_per_s=np.asarray(network.node_port.bytes_per_s) / _senders(split, network)
        )
    cost = collectives.send(part, port)
    times = n_passes * split.schedule.n_pieces
    seconds = times * (cost.seconds + CALL_S)
    exposed_s = np.maximum(seconds - slot_s, 0.0) if split.schedule.n_pieces > 1 else seconds
    return Traffic(exposed_s, seconds, times * cost.bytes_sent)


def _senders(split: ModelSplit, network: Network) -> int:
    """Devices of one node that send to the next stage at once."""
    return min(split.tensor * split.context, network.n_inside)


def _contexts(split: ModelSplit, step: LocalStep, blocks_graph: Graph, network: Network, n_passes: int) -> Traffic:
    """What those that share a sequence exchange around attention."""
    sizes = step.batch_sizes
    if split.context == 1:
        return _no_traffic(sizes)
    group = context_network(network, split)
    kept_s = split.stage_fraction(len(attention_outputs(blocks_graph)))
    keys = key_value_bytes(blocks_graph, sizes) / split.tensor  # of whole sequences
    if split.context_kind == "ulysses":
        streams = activation_bytes(blocks_graph, sizes) / split.tensor
        # Keys and values are smaller than queries where heads share them.
        whole = (2 * streams + keys).sum(axis=1) / _EXCHANGES_A_PASS
        cost = collectives.all_to_all(whole / split.context, split.context, _slowest_port(group))
        seconds = n_passes * _EXCHANGES_A_PASS * kept_s * (cost.seconds + streams.shape[1] * CALL_S)
        return Traffic(seconds, seconds, n_passes * _EXCHANGES_A_PASS * kept_s * cost.bytes_sent)
    # Backward passes keys and values around again, and their gradients with them.
    rounds = 1 if n_passes == 1 else 3
    hop = collectives.send(keys / split.context, _slowest_port(group))
    seconds = rounds * (split.context - 1) * kept_s * (hop.seconds + CALL_S).sum(axis=1)
    sent = rounds * (split.context - 1) * kept_s * hop.bytes_sent.sum(axis=1)
    return Traffic(np.maximum(seconds - kept_s * step.attention_s, 0.0), seconds, sent)


def _slowest_port(network: Network) -> collectives.Wire:
    return network.inside_port if network.n_nodes == 1 else network.node_port


def _no_traffic(sizes: Floats | Ints) -> Traffic:
    return Traffic(*(np.zeros(len(sizes)) for _ in range(3)))


def held_fractions(split: ModelSplit, graph: Graph, n_micro_batches: int) -> Floats:
    """What the fullest device holds of each storage of the whole step."""
    blocks = attention_outputs(graph)
    return storage_fraction(
        graph,
        is_residual(graph, blocks),
        split,
        stage=split.stage_fraction(len(blocks)),
        n_in_flight=split.schedule.n_in_flight(split.pipeline, n_micro_batches),
    )
