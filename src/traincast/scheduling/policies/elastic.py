"""Ours: devices where they shorten short jobs most, in whole steps that pay, and changed only where that pays.

With R(n) the forecast seconds until a job's end on n devices and W = R(1) its remaining work (R(2) where it needs a
worker and a server), a job is worth

    v(n) = sqrt(W) / (R(n) + restart if n is not what it has now),

and devices are divided so that the sum of v is large. In W / R, the speed-up, all jobs count alike; in 1 / R only short
ones count; the square root lies between. Devices are handed out along the upper concave hull of v, steepest first: a
hull steps over counts that are no use (the fifth device is on a second node, and often slower than four alone),
where one-at-a-time gains end. The restart in v keeps a job where it is unless the change earns it back. A decision is
taken when a job comes or goes, or a node does, not at every interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import NEVER, Decision, State
from traincast.scheduling.placing import only_kind, place_tightly

Floats = NDArray[np.float64]
_LEAST_S = 1e-6  # a job that has not ended has something left, whatever rounding says


@dataclass(frozen=True, slots=True, kw_only=True)
class Elastic:
    """Concave hulls of worth, short jobs first."""

    name: str = "traincast"
    adapts_batch: bool = False
    is_random: bool = False
    shortness: float = 0.5  # 0: throughput alone, 1: short jobs alone
    reluctance: float = 2.0  # restarts counted for each that happens

    def fresh(self, seed: int) -> Elastic:
        return self

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        n_devices = sum(state.capacity)
        jobs = list(state.active)
        if sum(state.n_most(job, kind) for job in jobs) <= n_devices:
            counts = {job: self._best(state, job, kind) for job in jobs}
        else:
            counts = divide_by_hull({job: self.worth(state, job, kind) for job in jobs}, n_devices)
        return Decision(place_tightly(state, {job: (kind, n) for job, n in counts.items() if n}))

    def wakes_s(self, state: State) -> float:
        return NEVER

    def worth(self, state: State, job: int, kind: str) -> Floats:
        """v for 0, 1, 2, ... devices."""
        left = np.maximum(state.remaining_s(job, kind), _LEAST_S)
        restart_s = self.reluctance * state.jobs[job].restart_s
        seconds = left + restart_s
        held = state.held.get(job, 0)
        seconds[held] = left[held]
        return np.asarray(left[state.n_least(job)] ** (1 - self.shortness) / seconds)

    def _best(self, state: State, job: int, kind: str) -> int:
        """Where there is enough for all, each takes what is fastest.

        Who has all it can use was given that because it is fastest, and needs no second look: most of a long queue.
        """
        most = state.n_most(job, kind)
        if most in (state.held.get(job, 0), state.n_least(job)):
            return most
        return int(np.argmax(self.worth(state, job, kind)))


def divide_by_hull(worth: Mapping[int, Floats], n_devices: int) -> dict[int, int]:
    """Devices for each job, steepest piece of all hulls first. A piece that does not fit is taken as far as it pays."""
    counts = dict.fromkeys(worth, 0)
    pieces: list[tuple[float, int, int, int]] = []
    for job, values in worth.items():
        corners = concave_hull(values)
        pieces += [
            ((values[low] - values[high]) / (high - low), job, low, high) for low, high in itertools.pairwise(corners)
        ]
    n_left = n_devices
    for _, job, low, high in sorted(pieces, key=lambda piece: piece[0]):
        if not n_left:
            break
        if counts[job] != low:  # an earlier piece of this job did not fit
            continue
        values = worth[job]
        if high - low > n_left:
            part = values[low + 1 : low + n_left + 1]
            high = low + 1 + int(np.argmax(part)) if part.max() > values[low] else low
        counts[job] = high
        n_left -= high - low
    return counts


def concave_hull(values: Floats) -> list[int]:
    """Corners of the smallest concave curve above the values, as far as it rises; the first is 0."""
    corners: list[int] = []
    y: Sequence[float] = values.tolist()
    for x in range(int(np.argmax(values)) + 1):
        while len(corners) > 1:
            middle, first = corners[-1], corners[-2]
            if (y[middle] - y[first]) * (x - middle) > (y[x] - y[middle]) * (middle - first):
                break
            corners.pop()
        corners.append(x)
    return corners
