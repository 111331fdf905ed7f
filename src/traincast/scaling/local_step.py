"""What one device does of a step on many, and what the step on many is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traincast.hardware.host import Host
from traincast.kernels.timeline import StepTimeline
from traincast.scaling.gradients import Gradients, gradients_of
from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.traffic import tensor_bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalStep:
    """The step of one device on its share of the batch. Arrays have one entry a batch size."""

    graph: Graph
    timeline: StepTimeline
    host: Host
    batch_sizes: Ints  # samples of one device and pass
    n_micro_steps: int = 1
    can_overlap: bool = True  # what reduces gradients does not take the compute of backward away
    held_fraction: float = 1.0  # of the model's weights that the device has; below 1 where several share a replica
    attention_s: Floats | float = 0.0  # of one pass, in which context parallelism hides what it sends
    usual_stage: float = 1.0  # a pass of a stage without the head, in parts of the slowest one's
    gathers_ahead: bool = False  # new weights are gathered while the next forward pass runs (Megatron-Core)

    @property
    def gradients(self) -> Gradients:
        whole = gradients_of(self.graph)
        return whole if self.held_fraction == 1.0 else replace(whole, bytes=whole.bytes * self.held_fraction)

    @cached_property
    def backward_end_s(self) -> Floats:
        """When the last op of the backward pass ends, in the clock of `timeline.finished_s`."""
        backward = np.flatnonzero(self.graph.op_phase == Phase.BACKWARD)
        if not len(backward):
            return np.zeros(len(self.batch_sizes))
        last: Floats = self.timeline.finished_s[:, backward[-1]]
        return last

    @cached_property
    def weight_bytes(self) -> float:
        """Of all parameters, trained or not."""
        owners = self.graph.storage_owner[self.graph.storage_kind == StorageKind.WEIGHT]
        return float(tensor_bytes(self.graph, np.array([2]))[0, owners].sum())

    @cached_property
    def input_bytes(self) -> Floats:
        """What the loader brings for one pass."""
        owners = self.graph.storage_owner[self.graph.storage_kind == StorageKind.INPUT]
        return tensor_bytes(self.graph, self.batch_sizes)[:, owners].sum(axis=1)

    @cached_property
    def output_bytes(self) -> Floats:
        """What the model hands to the loss: tensors that forward made and the loss reads."""
        graph = self.graph
        phase = np.repeat(graph.op_phase, graph.op_outputs.lengths)
        made = graph.op_outputs.values[phase == Phase.FORWARD]
        read = graph.op_inputs.values[np.repeat(graph.op_phase, graph.op_inputs.lengths) == Phase.LOSS]
        both = np.intersect1d(made, read)
        return tensor_bytes(graph, self.batch_sizes)[:, both].sum(axis=1)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ParallelStep:
    """A step on many devices; its parts add up to `step_s`. Arrays have one entry a batch size.

    `communication_s` is how long the links are busy, `exposed_s` the part of it that nothing hides. `bytes_sent` is
    what the process that sends most sends in a step. `bubble_s` is the part of forward, loss and backward in which a
    stage of a pipeline waits for others, `update_fraction` what one device does of the update.
    """

    forward_s: Floats
    loss_s: Floats
    backward_s: Floats
    optimizer_s: Floats
    exposed_s: Floats
    communication_s: Floats
    bytes_sent: Floats
    bubble_s: Floats
    update_fraction: float = 1.0

    @property
    def compute_s(self) -> Floats:
        return self.forward_s + self.loss_s + self.backward_s + self.optimizer_s

    @property
    def step_s(self) -> Floats:
        return self.compute_s + self.exposed_s
