"""Instants of a step, taken so that they mean something on a device that works on after the host has asked.

On a CPU an op has ended when its call returns. On CUDA the host runs ahead: an instant is an event in the stream, read
after the device has come to it.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any, Protocol


class Stopwatch(Protocol):
    """Marks instants; `read` gives the seconds between each and the next, and forgets them."""

    def mark(self) -> None: ...

    def read(self) -> list[float]: ...

    def synchronize(self) -> None:
        """Waits until the device has done all that it was asked."""
        ...


class CpuStopwatch:
    """The host's clock."""

    def __init__(self) -> None:
        self._instants: list[float] = []

    def mark(self) -> None:
        self._instants.append(time.perf_counter())

    def read(self) -> list[float]:
        instants, self._instants = self._instants, []
        return [end - start for start, end in pairwise(instants)]

    def synchronize(self) -> None:
        """Nothing is ever pending."""


class CudaStopwatch:
    """Events in the stream of a device. `cuda` is `torch.cuda`, or what stands in for it where there is no GPU.

    Without its name the device would be torch's current one: events in the idle stream of another GPU are reached at
    once, and would time the launches.
    """

    def __init__(self, cuda: Any, device: str) -> None:
        self._cuda, self._device = cuda, device
        self._events: list[Any] = []

    def mark(self) -> None:
        event = self._cuda.Event(enable_timing=True)
        event.record(self._cuda.current_stream(self._device))
        self._events.append(event)

    def read(self) -> list[float]:
        self.synchronize()
        events, self._events = self._events, []
        return [start.elapsed_time(end) * 1e-3 for start, end in pairwise(events)]

    def synchronize(self) -> None:
        self._cuda.synchronize(self._device)


def stopwatch_for(device: str) -> Stopwatch:
    """The one that tells the truth on this device ('cpu', 'cuda', 'cuda:1')."""
    if device.partition(":")[0] != "cuda":
        return CpuStopwatch()
    import torch

    return CudaStopwatch(torch.cuda, device)
