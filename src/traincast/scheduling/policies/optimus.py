"""Optimus (Peng et al., EuroSys 2018): devices by largest marginal gain.

With Q steps left and speed f(w), a job on w workers ends in Q / f(w). Every job starts with one worker; then, again and
again, the worker goes to the job whose end it brings closer most,

    gain = Q / f(w) - Q / f(w + 1),

until no device is left or no gain is above 0. This is the published simulator's Optimus with an oracle: Q and f are
forecasts (exact unless errors are injected), there are no parameter servers, and the submitted batch stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import EVERY_TIME, Decision, Foreseeable, State
from traincast.scheduling.placing import only_kind, place

Floats = NDArray[np.float64]
_HALVINGS = 40
_ROUNDING = 1e-6  # of a stretch: so close to the moment at which gains cross, rounding could decide


@dataclass(frozen=True, slots=True)
class Optimus:
    """Marginal gain, with forecasts of what remains."""

    name: str = "optimus"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> Optimus:
        return self

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        counts, elastic, n_left = _to_give_out(state, kind)
        counts |= marginal_gain(elastic, n_left, {job: counts[job] for job in elastic})
        fewest_first = sorted(counts, key=counts.__getitem__)
        return Decision(place(state, {job: (kind, counts[job]) for job in fewest_first}))

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME

    def keeps_until_s(self, state: Foreseeable) -> float:
        """Until the first comparison of two gains, or of a gain with 0, may come out otherwise.

        While everyone keeps its pace, gains move along straight lines. So where the same jobs are chosen in the same
        order at two moments, they are at all moments between, and the last such moment is found by halving.
        """
        until_s = state.even_until_s
        if until_s == np.inf:
            return state.now_s
        kind = only_kind(state, self.name)
        start, elastic, n_left = _to_give_out(state, kind)
        now = _gains(elastic, start)
        then = _gains(_to_give_out(state.later(until_s), kind)[1], start)
        same = _same_fraction(now, then, n_left)
        return state.now_s + same * (1 - _ROUNDING) * (until_s - state.now_s)


def _to_give_out(state: State, kind: str) -> tuple[dict[int, int], dict[int, Floats], int]:
    """With how many devices each job starts, the seconds left of those that can use more, and how many are left."""
    n_devices = sum(state.capacity)
    counts = start_with_least(state, n_devices)
    elastic = {job: state.remaining_s(job, kind) for job, n in counts.items() if state.n_most(job, kind) > n}
    return counts, elastic, n_devices - sum(counts.values())


def _same_fraction(now: Mapping[int, list[float]], then: Mapping[int, list[float]], n_left: int) -> float:
    """How far gains may go from now to then before others are chosen."""
    chosen = largest_gains(now, n_left)
    if largest_gains(then, n_left) == chosen:
        return 1.0
    same, other = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (same + other) / 2
        between = {job: [a + middle * (b - a) for a, b in zip(now[job], then[job], strict=True)] for job in now}
        if largest_gains(between, n_left) == chosen:
            same = middle
        else:
            other = middle
    return same


def start_with_least(state: State, n_devices: int) -> dict[int, int]:
    """The fewest that each job runs on (one, or a worker and a server), in the order of submission while they last."""
    counts: dict[int, int] = {}
    n_left = n_devices
    for job in state.active:
        n = state.n_least(job)
        if n > n_left:
            break
        counts[job] = n
        n_left -= n
    return counts


def marginal_gain(remaining_s: Mapping[int, Floats], n_left: int, start: Mapping[int, int]) -> dict[int, int]:
    """How many devices each job gets, from its seconds until the end by number of devices; `n_left` are given out."""
    counts = dict(start)
    for job in largest_gains(_gains(remaining_s, start), n_left):
        counts[job] += 1
    return counts


def _gains(remaining_s: Mapping[int, Floats], start: Mapping[int, int]) -> dict[int, list[float]]:
    """By how much each further device brings the end closer."""
    return {job: (left[start[job] : -1] - left[start[job] + 1 :]).tolist() for job, left in remaining_s.items()}


def largest_gains(gains: Mapping[int, Sequence[float]], n_left: int) -> list[int]:
    """Who gets the first device, the second, ... of `n_left`; `gains` are those of each further device of a job."""
    chosen: list[int] = []
    given = dict.fromkeys(gains, 0)
    best = [(-gain[0], number, job) for number, (job, gain) in enumerate(gains.items()) if gain and gain[0] > 0]
    heapq.heapify(best)
    while best and len(chosen) < n_left:
        _, number, job = best[0]
        chosen.append(job)
        given[job] += 1
        following = gains[job][given[job]] if given[job] < len(gains[job]) else 0.0
        if following > 0:
            heapq.heapreplace(best, (-following, number, job))
        else:
            heapq.heappop(best)
    return chosen
