"""Into how many passes a batch has to be cut so that it fits: the same sum as `Forecast.peak_memory_bytes`, in bulk."""

from __future__ import annotations

import numpy as np

from traincast.hardware.device import Device
from traincast.memory.overhead import overhead_of
from traincast.memory.timeline import peak_bytes
from traincast.planning.space import MOST_PASSES, MachineGroup, Run
from traincast.scaling.held_memory import held_bytes_change
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Graph, Ints

_PASSES = 2 ** np.arange(MOST_PASSES.bit_length(), dtype=np.int64)


class Fitting:
    """Bytes of a pass, kept for all devices that run the same ops: they differ by a constant."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._graphs: dict[tuple[str, str], Graph] = {}
        self._bytes: dict[tuple[Graph, int], int] = {}
        self._constants: dict[tuple[Graph, str], int] = {}
        self._held: dict[tuple[Graph, Strategy, int], int] = {}

    def fewest_passes(self, place: MachineGroup, precision: str, strategy: Strategy, batch_sizes: Ints) -> Ints:
        """Of 1, 2, 4 ... that share each batch evenly; 0 where none of them fits."""
        graph = self._graph(place.device, precision)
        n_replicas = _PASSES[:, None] * place.n_devices
        is_possible = (batch_sizes % _PASSES[:, None] == 0) & (batch_sizes >= n_replicas)
        room = place.device.usable_memory_bytes - self._held_bytes(graph, strategy, place.n_devices)
        room -= self._constant(graph, place.device)
        shares = -(-batch_sizes // n_replicas)
        fits = is_possible & (shares <= self._largest(graph, shares[is_possible], room, place.device))
        return np.where(fits.any(axis=0), _PASSES[np.argmax(fits, axis=0)], 0)

    def _largest(self, graph: Graph, sizes: Ints, room: int, device: Device) -> int:
        """Of these samples a pass the most that fit; bytes never fall with them, so that few have to be asked."""
        ordered = np.unique(sizes)
        low, high = 0, len(ordered)
        while low < high:
            middle = (low + high) // 2
            fits = self._tracked(graph, int(ordered[middle]), device) <= room
            low, high = (middle + 1, high) if fits else (low, middle)
        return int(ordered[low - 1]) if low else 0

    def _graph(self, device: Device, precision: str) -> Graph:
        key = (device.kind, precision)
        if key not in self._graphs:
            self._graphs[key] = self._run.question(device, precision, 1).graph
        return self._graphs[key]

    def _tracked(self, graph: Graph, size: int, device: Device) -> int:
        """Tensors, and the allowances that depend on them, as on a CPU or on a GPU of no particular kind."""
        key = (graph, size)
        if key not in self._bytes:
            tensors = int(peak_bytes(graph, np.array([size]))[0])
            self._bytes[key] = tensors + overhead_of(graph, size, device=_usual(device)).total_bytes
        return self._bytes[key]

    def _constant(self, graph: Graph, device: Device) -> int:
        """What this device adds to that: the same at every size."""
        key = (graph, device.arch)
        if key not in self._constants:
            own, usual = (overhead_of(graph, 1, device=one).total_bytes for one in (device, _usual(device)))
            self._constants[key] = own - usual
        return self._constants[key]

    def _held_bytes(self, graph: Graph, strategy: Strategy, n_devices: int) -> int:
        key = (graph, strategy, n_devices)
        if key not in self._held:
            self._held[key] = held_bytes_change(strategy, graph, n_devices)
        return self._held[key]


def _usual(device: Device) -> Device | None:
    return device if device.kind == "cpu" else None
