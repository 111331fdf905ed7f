"""In the manner of Pollux (Qiao et al., OSDI 2021): goodput, with the batch chosen by the scheduler.

    goodput(n) = max over batches m of  throughput(n, m) x efficiency(m)
    speedup(n) = goodput(n) / goodput(fair share)
    fitness    = (mean over jobs of (speedup x factor) ** p) ** (1/p),  p = -1
    factor     = 1, or max(T - R d, 0) / (T + d) where the devices change: age T, restarts so far R, restart d

Only the goodput of the epoch at hand is used: nothing is known of how long a job will take. A job may have at most
twice the devices it has had. Pollux searches with a genetic algorithm over placements and keeps distributed jobs apart;
here the fitness of counts is raised along concave hulls, and placement follows. Its goodput is fitted online; here it
is the forecast one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import EVERY_TIME, Decision, Foreseeable, State
from traincast.scheduling.placing import only_kind, place_tightly
from traincast.scheduling.policies.elastic import divide_by_hull
from traincast.scheduling.policies.sure_division import Between, is_sure

Floats = NDArray[np.float64]
_LEAST_SPEEDUP = 1e-3  # of a job that waits, so that its reciprocal is finite
_INEXACT = 1e-14 / _LEAST_SPEEDUP  # of differences between worths, which are below its reciprocal
_PARTS = 12  # of what lies ahead, each a quarter of the one before: so many are tried
_ROUNDING = 1e-6  # of a stretch: so close to the moment at which a segment ends, rounding could decide


@dataclass(eq=False, slots=True)
class Goodput:
    """Power mean of goodputs over fair shares."""

    name: str = "pollux"
    adapts_batch: bool = True
    is_random: bool = False
    _had: dict[int, int] = field(default_factory=dict)

    def fresh(self, seed: int) -> Goodput:
        return Goodput()

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        counts = divide_by_hull(self._worths(state, kind), sum(state.capacity))
        for job, n in counts.items():
            self._had[job] = max(n, self._had.get(job, 0))
        return Decision(place_tightly(state, {job: (kind, n) for job, n in counts.items() if n}))

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME

    def keeps_until_s(self, state: Foreseeable) -> float:
        """Until a moment before which worths, which all rise while jobs grow older, cannot be divided otherwise."""
        ahead_s = state.even_until_s - state.now_s
        if not 0 < ahead_s < np.inf:
            return state.now_s
        kind, n_devices = only_kind(state, self.name), sum(state.capacity)
        now = self._worths(state, kind)
        for part in range(_PARTS):
            until_s = state.now_s + ahead_s * (1 - _ROUNDING) / 4**part
            then = self._worths(state.later(until_s), kind)
            if is_sure([_between(state, job, now[job], then[job]) for job in now], n_devices, rounding=_INEXACT):
                return until_s
        return state.now_s

    def _worths(self, state: State, kind: str) -> dict[int, Floats]:
        fair = max(1, -(-sum(state.capacity) // len(state.active)))
        return {job: self.worth(state, job, kind, fair) for job in state.active}

    def worth(self, state: State, job: int, kind: str, fair: int) -> Floats:
        """What the fitness gains, by number of devices: concave where the goodput is."""
        seconds, least = state.segment_s(job, kind), state.n_least(job)
        speedup = seconds[min(max(fair, least), len(seconds) - 1)] / seconds
        restart_s, now = state.jobs[job].restart_s, state.held.get(job, 0)
        age_s = state.now_s - state.jobs[job].submit_s
        if now and age_s + restart_s > 0:
            factor = max(age_s - max(state.n_starts[job] - 1, 0) * restart_s, 0.0) / (age_s + restart_s)
            speedup = np.where(np.arange(len(speedup)) == now, speedup, speedup * factor)
        most = max(2 * self._had.get(job, 0), least)
        return np.asarray(1 / _LEAST_SPEEDUP - 1 / (speedup[: most + 1] + _LEAST_SPEEDUP))


def _between(state: Foreseeable, job: int, now: Floats, then: Floats) -> Between:
    """Only the factor of a restart moves, and the count that a job has is free of it."""
    held = state.held.get(job, 0)
    moves = held > 0 and state.jobs[job].restart_s > 0
    return Between(now, then, (np.arange(len(now)) == held) | (then == 0) | (not moves), held)
