"""Policies that give each job what it asks for, or nothing: they differ in who comes first.

First in, first out: in the order of submission; while the first of those who wait does not fit, nobody behind it
starts. Shortest remaining time first: by the forecast seconds until the end, and running jobs give way; who does not
fit is passed over.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.scheduling.decision import NEVER, Decision, State
from traincast.scheduling.placing import Grant, devices_of_types, place


@dataclass(frozen=True, slots=True)
class Fifo:
    """First in, first out, without preemption."""

    name: str = "fifo"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> Fifo:
        return self

    def decide(self, state: State) -> Decision:
        waiting = (job for job in state.active if job not in state.placed)  # read only as far as they fit
        order = itertools.chain(state.placed, waiting)
        return Decision(place(state, grant_as_asked(state, order, is_strict=True)))

    def wakes_s(self, state: State) -> float:
        return NEVER


@dataclass(frozen=True, slots=True)
class ShortestRemaining:
    """Shortest remaining time first, with preemption."""

    name: str = "srtf"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> ShortestRemaining:
        return self

    def decide(self, state: State) -> Decision:
        jobs = list(state.active)
        if not _all_fit(state, jobs):
            order = np.argsort(state.requested_s(jobs), kind="stable")
            jobs = [jobs[place] for place in order]
        return Decision(place(state, grant_as_asked(state, jobs, is_strict=False)))

    def wakes_s(self, state: State) -> float:
        return NEVER  # who runs gets shorter and who waits does not: the order stays until a job comes or goes


def _all_fit(state: State, jobs: Sequence[int]) -> bool:
    """Then their order does not matter, on devices of one type."""
    is_one_kind = len(state.machines.types) == 1
    return is_one_kind and sum(state.jobs[job].n_devices for job in jobs) <= sum(state.capacity)


def grant_as_asked(state: State, order: Iterable[int], *, is_strict: bool) -> dict[int, Grant]:
    """Each in turn gets what it asks for, where it runs now or else on the fastest type with enough left.

    Strict: nobody starts behind one that does not fit.
    """
    if len(state.machines.types) == 1:
        return _grant_one_kind(state, order, is_strict=is_strict)
    left = devices_of_types(state)
    grants: dict[int, Grant] = {}
    for job in order:
        n = state.jobs[job].n_devices
        fitting = next((one for one in _preferred(state, job) if left[one] >= n), None)
        if fitting is not None:
            left[fitting] -= n
            grants[job] = (fitting, n)
        elif is_strict:
            break
        if not any(left.values()):
            break
    return grants


def _grant_one_kind(state: State, order: Iterable[int], *, is_strict: bool) -> dict[int, Grant]:
    """The same with nothing to choose, for long queues."""
    kind = state.machines.types[0]
    n_left = sum(state.capacity)
    grants: dict[int, Grant] = {}
    for job in order:
        n = state.jobs[job].n_devices
        if n <= n_left:
            n_left -= n
            grants[job] = (kind, n)
        elif is_strict:
            break
        if not n_left:
            break
    return grants


def _preferred(state: State, job: int) -> Sequence[str]:
    """Types, the one in use first, then by forecast speed."""
    if job in state.placed:
        own = state.machines.kinds[state.placed[job][0][0]]
        return (own, *(kind for kind in state.kinds(job) if kind != own))
    n = state.jobs[job].n_devices
    kinds = [kind for kind in state.kinds(job) if state.machines.n_devices_of(kind) >= n]
    return sorted(kinds, key=lambda kind: float(state.whole_s(job, kind)[: n + 1][-1]))
