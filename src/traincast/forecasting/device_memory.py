"""The memory of the fullest device of a run, as PyTorch counts it and as the GPU reports it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traincast.forecasting.question import Question
from traincast.memory.overhead import Overhead, overhead_of
from traincast.memory.timeline import alive_at, alive_of
from traincast.scaling.held_memory import added_bytes
from traincast.scaling.model_parallel import held_fractions
from traincast.scaling.split import WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Bytes of the tensors at the peak, with copies that data parallelism keeps, and what comes on top."""

    tensor_bytes: int
    overhead: Overhead

    @property
    def allocated_bytes(self) -> int:
        """What PyTorch's allocator hands out (`torch.cuda.max_memory_allocated`): workspaces are from it, too."""
        return self.tensor_bytes + self.overhead.rounding_bytes + self.overhead.workspace_bytes

    @property
    def reserved_bytes(self) -> int:
        """What it has from the driver for that (`torch.cuda.max_memory_reserved`)."""
        return self.allocated_bytes + self.overhead.fragmented_bytes

    @property
    def total_bytes(self) -> int:
        """What `nvidia-smi` shows: the context is the driver's own."""
        return self.reserved_bytes + self.overhead.context_bytes


def device_memory(question: Question) -> DeviceMemory:
    """At the peak of the fullest device."""
    graph, micro = question.graph, question.micro_batch_size
    if question.split != WHOLE:
        return _of_split(question)
    alive = alive_at(graph, micro, question.shares)
    added = added_bytes(question.strategy, graph, question.n_devices)
    overhead = overhead_of(graph, micro, device=question.device, alive=alive)
    return DeviceMemory(tensor_bytes=alive.peak_bytes + added, overhead=overhead)


def _of_split(question: Question) -> DeviceMemory:
    """Its part of every storage. The allocator's allowance shrinks as what it manages does.

    Of the copies that data parallelism keeps, the device has its part.
    """
    graph, split, micro = question.graph, question.split, question.micro_batch_size
    known = alive_at(graph, micro, question.shares)
    fractions = held_fractions(split, graph, question.accumulation_steps)
    tracked = int(alive_of(graph, (known.sizes[None, :] * fractions).astype(np.int64), known.alloc).max())
    overhead = overhead_of(graph, micro, device=question.device, alive=known)
    part = tracked / known.peak_bytes
    overhead = replace(
        overhead,
        rounding_bytes=int(overhead.rounding_bytes * part),
        fragmented_bytes=int(overhead.fragmented_bytes * part),
    )
    copied = added_bytes(question.strategy, graph, question.n_peers) * question.held_fraction
    return DeviceMemory(tensor_bytes=tracked + int(copied), overhead=overhead)
