"""Into how many passes a batch has to be cut so that it fits: the same sum as `Forecast.peak_memory_bytes`, in bulk."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.hardware.device import Device
from traincast.memory.overhead import overhead_of
from traincast.memory.shares import Shares
from traincast.memory.timeline import alive_at
from traincast.planning.space import MOST_PASSES, MachineGroup, Run
from traincast.scaling.held_memory import added_bytes, shares_of
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Graph, Ints

_PASSES = 2 ** np.arange(MOST_PASSES.bit_length(), dtype=np.int64)


class Fitting:
    """Bytes of a pass, kept for all devices that run the same ops: they differ by a constant."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._graphs: dict[tuple[str, str, str], Question] = {}
        self._bytes: dict[tuple[Graph, Shares, int], int] = {}
        self._constants: dict[tuple[Graph, str], int] = {}
        self._held: dict[tuple[Graph, Strategy, int], int] = {}

    def fewest_passes(self, place: MachineGroup, precision: str, strategy: Strategy, batch_sizes: Ints) -> Ints:
        """Of 1, 2, 4 ... that share each batch evenly; 0 where none of them fits."""
        question = self._question(place.device, precision, strategy)
        graph = question.graph
        n_replicas = _PASSES[:, None] * place.n_devices
        is_possible = (batch_sizes % _PASSES[:, None] == 0) & (batch_sizes >= n_replicas)
        room = place.device.usable_memory_bytes - self._held_bytes(graph, strategy, place.n_devices)
        room -= self._constant(graph, place.device)
        of_pass = -(-batch_sizes // n_replicas)
        fits = np.zeros(is_possible.shape, dtype=bool)
        for rows in (slice(0, 1), slice(1, None)):  # one pass, or several whose gradients are added up
            held = shares_of(
                strategy,
                place.n_devices,
                has_masters=question.run_settings.keeps_masters,
                accumulates=rows.start > 0 or question.settings.stack == "megatron",
            )
            asked = of_pass[rows][is_possible[rows]]
            fits[rows] = is_possible[rows] & (of_pass[rows] <= self._largest(graph, held, asked, room, place.device))
        return np.where(fits.any(axis=0), _PASSES[np.argmax(fits, axis=0)], 0)

    def _largest(self, graph: Graph, held: Shares, sizes: Ints, room: int, device: Device) -> int:
        """Of these samples a pass the most that fit; bytes never fall with them, so that few have to be asked."""
        ordered = np.unique(sizes)
        low, high = 0, len(ordered)
        while low < high:
            middle = (low + high) // 2
            fits = self._tracked(graph, held, int(ordered[middle]), device) <= room
            low, high = (middle + 1, high) if fits else (low, middle)
        return int(ordered[low - 1]) if low else 0

    def _question(self, device: Device, precision: str, strategy: Strategy) -> Question:
        """Of one sample on one device, for what it runs."""
        key = (device.kind, precision, strategy.kind)
        if key not in self._graphs:
            self._graphs[key] = self._run.question(device, precision, 1, strategy=strategy)
        return self._graphs[key]

    def _tracked(self, graph: Graph, held: Shares, size: int, device: Device) -> int:
        """Tensors, and the allowances that depend on them, as on a CPU or on a GPU of no particular kind."""
        key = (graph, held, size)
        if key not in self._bytes:
            alive = alive_at(graph, size, held)
            overhead = overhead_of(graph, size, device=_usual(device), alive=alive)
            self._bytes[key] = alive.peak_bytes + overhead.total_bytes
        return self._bytes[key]

    def _constant(self, graph: Graph, device: Device) -> int:
        """What this device adds to that: the same at every size."""
        key = (graph, device.name)
        if key not in self._constants:
            own, usual = (overhead_of(graph, 1, device=one).total_bytes for one in (device, _usual(device)))
            self._constants[key] = own - usual
        return self._constants[key]

    def _held_bytes(self, graph: Graph, strategy: Strategy, n_devices: int) -> int:
        key = (graph, strategy, n_devices)
        if key not in self._held:
            self._held[key] = added_bytes(strategy, graph, n_devices)
        return self._held[key]


def _usual(device: Device) -> Device | None:
    return device if device.kind == "cpu" else None
