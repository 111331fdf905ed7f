"""One replica of a transformer on several devices: tensor and pipeline parallelism as Megatron-LM has them.

Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): t devices of a node share every block. Their products take 1/t
of the time, and each block all-reduces its activations twice in forward and twice in backward; nothing hides that.

Pipeline parallelism (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", 2021; 1F1B without interleaving): p stages have consecutive blocks. With m micro-batches a step lasts
m + p - 1 slots, each a forward and backward pass of the fullest stage and a send of activations each way, which the
schedule waits for. The share (p - 1) / (m + p - 1) is idle: the bubble.

Devices are numbered node by node: those of a tensor-parallel group first, then stages, then replicas. Checked against
no measurement; docs/model_parallel.md says what is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from traincast.errors import InputError
from traincast.hardware.cluster import Cluster
from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import StepTimeline
from traincast.scaling import collectives
from traincast.scaling.blocks import activation_bytes, attention_outputs, is_divided_op, is_residual, storage_fraction
from traincast.scaling.hierarchy import Network, all_reduce
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.stragglers import SPREAD, waiting_s
from traincast.scaling.strategies import CALL_S, ddp
from traincast.trace.graph import Floats, Graph, Phase

REDUCES_A_PASS = 2  # all-reduces of a block, forward and backward each


@dataclass(frozen=True, slots=True)
class ModelSplit:
    """How many devices share a replica: `tensor` those of each block, `pipeline` stages."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def n_devices(self) -> int:
        """Of one replica."""
        return self.tensor * self.pipeline

    def n_slots(self, n_micro_batches: int) -> int:
        return n_micro_batches + self.pipeline - 1

    def bubble_fraction(self, n_micro_batches: int) -> float:
        """Share of the passes' time in which a stage has nothing to do."""
        return (self.pipeline - 1) / self.n_slots(n_micro_batches)

    def stage_fraction(self, n_blocks: int) -> float:
        """What the fullest stage has of the blocks; embedding and head are taken to be spread like them."""
        return -(-n_blocks // self.pipeline) / n_blocks if self.pipeline > 1 else 1.0


WHOLE = ModelSplit()


def check_devices(split: ModelSplit, cluster: Cluster | None) -> None:
    """Groups must come out even, and a tensor-parallel group stays inside a node."""
    n_devices = 1 if cluster is None else cluster.n_devices
    if n_devices % split.n_devices:
        raise InputError(
            f"tensor_parallel {split.tensor} x pipeline_parallel {split.pipeline} = {split.n_devices} devices a "
            f"replica, which does not divide {n_devices:,}: choose a number of devices that {split.n_devices} divides."
        )
    if cluster is not None and any(n % split.tensor for n in cluster.placement):
        raise InputError(
            f"tensor_parallel {split.tensor} needs groups inside a node, and {cluster.name} has nodes of "
            f"{', '.join(str(n) for n in dict.fromkeys(cluster.placement))} devices: choose a number that divides them."
        )


def check_model(split: ModelSplit, graph: Graph, model: str) -> None:
    """Blocks are what is divided."""
    n_blocks = len(attention_outputs(graph))
    if not n_blocks:
        raise InputError(
            f"Tensor and pipeline parallelism are for transformers, and {model} has no attention: leave "
            "tensor_parallel and pipeline_parallel at 1."
        )
    if split.pipeline > n_blocks:
        raise InputError(
            f"pipeline_parallel {split.pipeline} leaves stages without a block: {model} has {n_blocks} blocks."
        )


def divided_times(times: OpTimes, graph: Graph, blocks_graph: Graph, *, tensor: int) -> OpTimes:
    """Op times of one device of a tensor-parallel group. Kernels of a smaller problem are taken to be as efficient.

    Blocks are found in `blocks_graph`, the step before a compiler joined its ops; tensors have the same numbers.
    """
    residual = is_residual(graph, attention_outputs(blocks_graph))
    share = np.where(is_divided_op(graph, residual), 1.0 / tensor, 1.0)
    return replace(times, seconds=times.seconds * share, compute_s=times.compute_s * share)


def stage_timeline(timeline: StepTimeline, fraction: float) -> StepTimeline:
    """The step of the fullest stage, without the bubble: its share of both timelines, host and device."""
    if fraction == 1.0:
        return timeline
    names = [field.name for field in fields(timeline) if field.name != "op_log_sd"]  # a share, whatever the length
    return replace(timeline, **{name: fraction * getattr(timeline, name) for name in names})


def replica_network(network: Network, split: ModelSplit) -> Network:
    """Where the peers of one device sit, one in each replica.

    The port of a node is shared by all groups of peers that have a member in it.
    """
    node_of = np.repeat(np.arange(network.n_nodes), network.placement)[:: split.n_devices]
    placement = tuple(np.unique(node_of, return_counts=True)[1].tolist())
    n_groups = min(split.n_devices, network.n_inside)
    between = network.between
    if between is not None:
        between = replace(between, bytes_per_s=np.asarray(between.bytes_per_s) / n_groups)
    return replace(network, between=between, placement=placement)


def model_parallel(
    split: ModelSplit, step: LocalStep, blocks_graph: Graph, network: Network, *, spread: float = SPREAD
) -> ParallelStep:
    """The step of all devices, with `step` that of the fullest stage (`divided_times`, `stage_timeline`)."""
    reduced = ddp(step, replica_network(network, split))
    sizes = activation_bytes(blocks_graph, step.batch_sizes)
    n_passes = 2 if (step.graph.op_phase == Phase.BACKWARD).any() else 1
    in_blocks = _in_blocks(split, sizes, network, n_passes)
    sends = _sends(split, sizes, network, n_passes)
    own_s, own_bytes = in_blocks[0] + sends[0], in_blocks[1] + sends[1]
    m, n_slots = step.n_micro_steps, split.n_slots(step.n_micro_steps)
    idle = n_slots / m
    found = replace(
        reduced,
        bubble_s=(reduced.forward_s + reduced.loss_s + reduced.backward_s) * (idle - 1),
        forward_s=reduced.forward_s * idle,
        loss_s=reduced.loss_s * idle,
        backward_s=reduced.backward_s * idle,
        exposed_s=reduced.exposed_s + n_slots * own_s,
        communication_s=reduced.communication_s + m * own_s,
        bytes_sent=reduced.bytes_sent + m * own_bytes,
    )
    waited_s = waiting_s(network.n_devices, found.compute_s, spread)
    return replace(found, exposed_s=found.exposed_s + waited_s)


def _in_blocks(split: ModelSplit, sizes: Floats, network: Network, n_passes: int) -> tuple[Floats, Floats]:
    """Seconds and bytes of the all-reduces of one micro-batch in one stage."""
    if split.tensor == 1:
        return np.zeros(len(sizes)), np.zeros(len(sizes))
    group = replace(network, between=None, placement=(split.tensor,))
    cost = all_reduce(sizes, group, "nccl")
    times = n_passes * REDUCES_A_PASS * split.stage_fraction(sizes.shape[1])
    return times * (cost.seconds + CALL_S).sum(axis=1), times * cost.inside.bytes_sent.sum(axis=1)


def _sends(split: ModelSplit, sizes: Floats, network: Network, n_passes: int) -> tuple[Floats, Floats]:
    """Seconds and bytes of a micro-batch's activations on their way to the next stage, and of gradients back.

    All stages send at once, so the slowest way counts: between nodes wherever a replica does not fit into one.
    """
    if split.pipeline == 1:
        return np.zeros(len(sizes)), np.zeros(len(sizes))
    fits_inside = all(n % split.n_devices == 0 for n in network.placement)
    cost = collectives.send(sizes.max(axis=1), network.inside_port if fits_inside else network.node_port)
    return n_passes * (cost.seconds + CALL_S), n_passes * cost.bytes_sent


def held_fractions(split: ModelSplit, graph: Graph, n_micro_batches: int) -> Floats:
    """What the fullest device holds of each storage of the whole step."""
    blocks = attention_outputs(graph)
    return storage_fraction(
        graph,
        is_residual(graph, blocks),
        tensor=split.tensor,
        stage=split.stage_fraction(len(blocks)),
        n_in_flight=min(split.pipeline, n_micro_batches),
    )
