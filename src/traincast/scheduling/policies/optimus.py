"""Optimus (Peng et al., EuroSys 2018): devices by largest marginal gain.

With Q steps left and speed f(w), a job on w workers ends in Q / f(w). Every job starts with one worker; then, again and
again, the worker goes to the job whose end it brings closer most,

    gain = Q / f(w) - Q / f(w + 1),

until no device is left or no gain is above 0. This is the published simulator's Optimus with an oracle: Q and f are
forecasts (exact unless errors are injected), there are no parameter servers, and the submitted batch stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import EVERY_TIME, Decision, State
from traincast.scheduling.placing import only_kind, place

Floats = NDArray[np.float64]


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
        n_devices = sum(state.capacity)
        counts = start_with_least(state, n_devices)
        elastic = {job: state.remaining_s(job, kind) for job, n in counts.items() if state.n_most(job, kind) > n}
        n_left = n_devices - sum(counts.values())
        counts |= marginal_gain(elastic, n_left, {job: counts[job] for job in elastic})
        fewest_first = sorted(counts, key=counts.__getitem__)
        return Decision(place(state, {job: (kind, counts[job]) for job in fewest_first}))

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME


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
    gains = {job: (left[start[job] : -1] - left[start[job] + 1 :]).tolist() for job, left in remaining_s.items()}
    order = {job: number for number, job in enumerate(gains)}
    best = [(-gain[0], order[job], job) for job, gain in gains.items() if gain and gain[0] > 0]
    heapq.heapify(best)
    while best and n_left:
        _, number, job = best[0]
        counts[job] += 1
        n_left -= 1
        n_more = counts[job] - start[job]
        following = gains[job][n_more] if n_more < len(gains[job]) else 0.0
        if following > 0:
            heapq.heapreplace(best, (-following, number, job))
        else:
            heapq.heappop(best)
    return counts
