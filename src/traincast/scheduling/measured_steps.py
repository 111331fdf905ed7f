"""Step times as they were measured on real placements, and what lies between them.

A placement that was measured is read from its own row, linearly between local batches. One that was not lies between
measured numbers of nodes: at n nodes and g devices, each node is filled to u = (g/n - 1) / (d - 1), d devices being a
full node. Linear in u along the next smaller and the next larger measured number of nodes, then linear between the two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError

Floats = NDArray[np.float64]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One measurement. A shape of None: an even placement on so many nodes, whatever the order."""

    shape: Shape | None
    n_nodes: int
    n_devices: int
    local_batch: int
    step_s: float
    sync_s: float  # the part of the step that waits for the other devices


@dataclass(frozen=True, slots=True)
class _Line:
    """Times over local batches."""

    batches: Floats
    times_s: Floats  # step and sync, one row each

    def at(self, local_batch: Floats) -> Floats:
        """Linear between measured batches, and on along the last two beyond them, as far as a step takes any time."""
        x, y = self.batches, self.times_s
        if len(x) == 1:
            if (local_batch != x[0]).any():
                wanted = local_batch[local_batch != x[0]][0]
                raise InputError(f"steps were measured at a local batch of {x[0]:g} alone: {wanted:g} cannot be told.")
            return np.repeat(y, len(local_batch), axis=1)
        right = np.clip(np.searchsorted(x, local_batch), 1, len(x) - 1)
        part = (local_batch - x[right - 1]) / (x[right] - x[right - 1])
        between: Floats = y[:, right - 1] * (1 - part) + y[:, right] * part
        if (between[0] <= 0).any():
            wanted = local_batch[between[0] <= 0][0]
            raise InputError(
                f"steps were measured at local batches from {x[0]:g} to {x[-1]:g}: {wanted:g} is too far from them."
            )
        return np.maximum(between, 0.0)  # only the wait for others may be nothing


@dataclass(frozen=True, eq=False, slots=True)
class MeasuredSteps:
    """The table of one application on one type of device."""

    name: str
    by_shape: Mapping[Shape, _Line]
    by_count: Mapping[int, Mapping[int, _Line]]  # nodes, then devices
    smallest_batch: int
    largest_batch: int
    _cache: dict[tuple[Shape, bytes], tuple[Floats, Floats]] = field(default_factory=dict)

    @property
    def max_devices(self) -> int:
        """The most devices that were measured together."""
        return max(max(line) for line in self.by_count.values())

    @property
    def node_size(self) -> int:
        """Devices of a full node."""
        return max(-(-n // nodes) for nodes, line in self.by_count.items() for n in line)

    def step_and_sync_s(self, shape: Shape, local_batch: Floats) -> tuple[Floats, Floats]:
        """Seconds of one step on such a placement, and what of them waits for others, by local batch."""
        key = (shape, local_batch.tobytes())
        if key not in self._cache:
            line = self.by_shape.get(smallest_rotation(shape))
            try:
                step, sync = line.at(local_batch) if line is not None else self._between(shape, local_batch)
            except InputError as error:
                raise InputError(f"'{self.name}' on {shape}: {error}") from None
            self._cache[key] = step, sync
        return self._cache[key]

    def _between(self, shape: Shape, local_batch: Floats) -> Floats:
        n_devices = sum(shape)
        if not shape or n_devices > self.max_devices or max(shape) > self.node_size:
            raise InputError(
                f"it was measured on up to {self.max_devices} devices and {self.node_size} per node: a placement "
                f"of {'+'.join(map(str, shape)) or 0} is outside its table."
            )
        sizes = sorted(self.by_count)
        n_nodes = min(len(shape), sizes[-1])
        filled = min((n_devices / n_nodes - 1) / max(self.node_size - 1, 1), 1.0)
        right = bisect_left(sizes, n_nodes)
        if sizes[right] == n_nodes:
            return self._along(n_nodes, filled, local_batch)
        left = max(right - 1, 0)
        below = self._along(sizes[left], filled, local_batch)
        above = self._along(sizes[right], filled, local_batch)
        part = (n_nodes - sizes[left]) / (sizes[right] - sizes[left])
        return below * (1 - part) + above * part

    def _along(self, n_nodes: int, filled: float, local_batch: Floats) -> Floats:
        """At one number of nodes, filled to a fraction."""
        line = self.by_count[n_nodes]
        n_devices = n_nodes * (1 + filled * (self.node_size - 1))
        counts = sorted(line)
        right = min(bisect_left(counts, n_devices - 1e-9), len(counts) - 1)
        if right == 0 or abs(counts[right] - n_devices) < 1e-9:
            return line[counts[right]].at(local_batch)
        low, high = counts[right - 1], counts[right]
        part = min((n_devices - low) / (high - low), 1.0)
        return line[low].at(local_batch) * (1 - part) + line[high].at(local_batch) * part


def measured_steps(name: str, rows: Iterable[StepRow]) -> MeasuredSteps:
    """A table from its rows. Several shapes of one number of nodes and devices are averaged for what lies between."""
    of_shape: dict[Shape, dict[int, tuple[float, float]]] = {}
    of_count: dict[tuple[int, int], dict[int, list[tuple[float, float]]]] = {}
    for row in rows:
        times = (row.step_s, row.sync_s)
        if row.shape is not None:
            of_shape.setdefault(smallest_rotation(row.shape), {})[row.local_batch] = times
        of_count.setdefault((row.n_nodes, row.n_devices), {}).setdefault(row.local_batch, []).append(times)
    if not of_count:
        raise InputError(f"'{name}' has no measured steps.")
    by_count: dict[int, dict[int, _Line]] = {}
    for (n_nodes, n_devices), found in of_count.items():
        means = {batch: tuple(np.mean(times, axis=0)) for batch, times in found.items()}
        by_count.setdefault(n_nodes, {})[n_devices] = _line(means)
    batches = [batch for found in of_count.values() for batch in found]
    by_shape = {shape: _line(found) for shape, found in of_shape.items()}
    return MeasuredSteps(name, by_shape, by_count, min(batches), max(batches))


def _line(found: Mapping[int, tuple[float, ...]]) -> _Line:
    batches = sorted(found)
    return _Line(np.array(batches, dtype=float), np.array([found[batch] for batch in batches]).T)


def smallest_rotation(shape: Shape) -> Shape:
    """A ring has no first node: of all that start elsewhere, the smallest."""
    return min((shape[start:] + shape[:start] for start in range(len(shape))), default=())
