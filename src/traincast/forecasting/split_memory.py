"""The memory of a device that shares one replica of the model with others."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.memory.overhead import overhead_of
from traincast.memory.timeline import alive_of
from traincast.scaling.gradients import gradients_of
from traincast.scaling.model_parallel import held_fractions


def split_memory_bytes(question: Question) -> int:
    """At the peak of the fullest device: its part of every storage, and the allowances of `traincast memory`.

    The allocator's allowance shrinks as what it manages does. With several replicas, data parallelism keeps a copy of
    the gradients, of which the device has its part.
    """
    graph, split, micro = question.graph, question.split, question.micro_batch_size
    whole = graph.storage_bytes(np.array([micro]))
    own = (whole * held_fractions(split, graph, question.accumulation_steps)).astype(np.int64)
    tracked, of_whole = int(alive_of(graph, own).max()), int(alive_of(graph, whole).max())
    allowance = overhead_of(graph, micro, device=question.device)
    allocator_bytes = allowance.allocator_bytes * tracked // of_whole
    copied_bytes = gradients_of(graph).total_bytes * question.held_fraction if question.n_replicas > 1 else 0.0
    return tracked + allowance.context_bytes + allowance.workspace_bytes + allocator_bytes + int(copied_bytes)
