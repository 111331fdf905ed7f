"""The memory of a device that shares one replica of the model with others."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.memory.overhead import overhead_of
from traincast.memory.timeline import alive_of
from traincast.scaling.held_memory import held_bytes_change
from traincast.scaling.model_parallel import held_fractions


def split_memory_bytes(question: Question) -> int:
    """At the peak of the fullest device: its part of every storage, and the allowances of `traincast memory`.

    The allocator's allowance shrinks as what it manages does. Of what the strategy adds or shards away, the device has
    its part.
    """
    graph, split, micro = question.graph, question.split, question.micro_batch_size
    whole = graph.storage_bytes(np.array([micro]))
    own = (whole * held_fractions(split, graph, question.accumulation_steps)).astype(np.int64)
    tracked, of_whole = int(alive_of(graph, own).max()), int(alive_of(graph, whole).max())
    allowance = overhead_of(graph, micro, device=question.device)
    allocator_bytes = allowance.allocator_bytes * tracked // of_whole
    change = held_bytes_change(question.strategy, graph, question.n_peers) * question.held_fraction
    return tracked + allowance.context_bytes + allowance.workspace_bytes + allocator_bytes + int(change)
