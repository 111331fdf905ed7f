"""Ways to train on many devices, each a function from the step of one device to the step of all.

All are synchronous data parallelism but `ps_async`: every device has the whole model and its share of the batch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.kernels.timeline import forward_dispatch_s
from traincast.scaling import collectives
from traincast.scaling.gradients import buckets_of
from traincast.scaling.hierarchy import Network, all_reduce
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.overlap import overlap
from traincast.trace.graph import Graph, StorageKind

# From the call of a collective to its first byte: a kernel launch and a rendezvous of all devices.
CALL_S = 20e-6


def alone(step: LocalStep) -> ParallelStep:
    """One device: nothing to exchange."""
    timeline, nothing = step.timeline, np.zeros(len(step.batch_sizes))
    return ParallelStep(
        forward_s=timeline.forward_s,
        loss_s=timeline.loss_s,
        backward_s=timeline.backward_s,
        optimizer_s=timeline.optimizer_s,
        exposed_s=nothing,
        communication_s=nothing,
        bytes_sent=nothing,
        bubble_s=nothing,
    )


def ddp(step: LocalStep, network: Network, *, algorithm: str = "nccl") -> ParallelStep:
    """DistributedDataParallel: buckets of gradients are reduced while backward goes on.

    With gradient accumulation only the last pass of a step reduces. Before a step the first process sends its buffers
    (statistics of batch norm) to all, which between processes on a CPU costs as much as a bucket.
    """
    buckets = buckets_of(step.gradients)
    if network.n_devices == 1 or not len(buckets.bytes):
        return alone(step)
    cost = all_reduce(buckets.bytes, network, algorithm)
    hidden = overlap(step, buckets, cost.seconds + CALL_S)
    buffers_s = 0.0 if step.can_overlap else _buffers_s(step.graph, network)
    sent = np.maximum(cost.inside.bytes_sent, cost.between.bytes_sent).sum()
    return replace(
        alone(step),
        exposed_s=hidden.exposed_s + buffers_s,
        communication_s=hidden.communication_s + buffers_s,
        bytes_sent=np.full(len(step.batch_sizes), float(sent)),
    )


def _buffers_s(graph: Graph, network: Network) -> float:
    """Two messages, one a type (numbers and counters), each down a tree; their bytes are few."""
    if not (graph.storage_kind == StorageKind.BUFFER).any():
        return 0.0
    depth = (network.n_devices - 1).bit_length()
    return 2 * depth * float(network.inside_port.latency_s)


def mirrored(step: LocalStep, network: Network, *, algorithm: str = "nccl") -> ParallelStep:
    """TensorFlow's MirroredStrategy: one process, all gradients packed and reduced when backward has ended.

    What the process does around a step, in Python, it does for every replica: a call costs n times as much. Ops are
    dispatched by native threads, those of one replica beside those of another, as on one device (docs/mirrored.md).
    """
    n_bytes = step.gradients.total_bytes
    if network.n_devices == 1 or not n_bytes:
        return alone(step)
    cost = all_reduce(n_bytes, network, algorithm)
    seconds = np.full(len(step.batch_sizes), float(cost.seconds) + CALL_S)
    sent = np.full(len(step.batch_sizes), float(np.maximum(cost.inside.bytes_sent, cost.between.bytes_sent)))
    more_calls_s = (network.n_devices - 1) * step.n_micro_steps * step.host.call_s
    forward_s = step.timeline.forward_s + more_calls_s  # a call is over before the first op
    return replace(alone(step), forward_s=forward_s, exposed_s=seconds, communication_s=seconds, bytes_sent=sent)


def dp(step: LocalStep, network: Network) -> ParallelStep:
    """PyTorch's DataParallel: one process; device 0 sends weights and inputs out, takes outputs and gradients in.

    Threads of one interpreter dispatch the replicas' forward passes one op at a time, so the host's work grows with
    the devices. Backward runs in native threads, one a device. Nothing overlaps, and device 0 alone updates.
    """
    n = network.n_devices
    if n == 1:
        return alone(step)
    timeline, wire = step.timeline, network.inside_port
    replicate = collectives.ring_broadcast(step.weight_bytes, n, wire)
    # Device 0 sends the others their inputs and gets their outputs back, each through its one port.
    scatter_s = (n - 1) * (step.input_bytes / np.asarray(wire.bytes_per_s) + np.asarray(wire.latency_s))
    gather_s = (n - 1) * (step.output_bytes / np.asarray(wire.bytes_per_s) + np.asarray(wire.latency_s))
    reduce = collectives.gather(step.gradients.total_bytes * n, n, wire)
    forward_host_s = step.n_micro_steps * forward_dispatch_s(step.graph, step.host)
    communication_s = replicate.seconds + scatter_s + gather_s + reduce.seconds + 4 * CALL_S
    return replace(
        alone(step),
        forward_s=np.maximum(timeline.forward_s, n * forward_host_s),
        exposed_s=step.n_micro_steps * communication_s,
        communication_s=step.n_micro_steps * communication_s,
        bytes_sent=step.n_micro_steps * (replicate.bytes_sent + (n - 1) * step.input_bytes),
    )
