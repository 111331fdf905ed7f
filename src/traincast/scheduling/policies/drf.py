"""Dominant resource fairness (Ghodsi et al., NSDI 2011).

A user's dominant share is the largest of its shares of any resource. Progressive filling: again and again, whoever has
the smallest dominant share gets the resources of one more task, until nothing fits. Here a job is a user and one worker
a task that needs one device; where devices are the only scarce resource this is max-min fairness of devices. On several
types a job is on one at a time: jobs are spread over the types, and each type is shared so.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from traincast.scheduling.decision import NEVER, Decision, State
from traincast.scheduling.placing import Grant, devices_of_types, place


@dataclass(frozen=True, slots=True)
class DominantFairness:
    """Everyone's dominant share grows together."""

    name: str = "drf"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> DominantFairness:
        return self

    def decide(self, state: State) -> Decision:
        grants: dict[int, Grant] = {}
        there = devices_of_types(state)
        members = _types_of_jobs(state, there)
        for kind, jobs in members.items():
            counts = _filled(state, jobs, kind, there[kind])
            grants |= {job: (kind, n) for job, n in counts.items() if n}
            there[kind] -= sum(counts.values())
        for job in state.active:  # who got nothing on its own type takes what is left over on another
            fitting = [kind for kind in state.kinds(job) if there[kind] >= state.n_least(job)]
            if job not in grants and fitting:
                kind = max(fitting, key=there.__getitem__)
                grants[job] = (kind, min(there[kind], state.n_most(job, kind)))
                there[kind] -= grants[job][1]
        return Decision(place(state, grants))

    def wakes_s(self, state: State) -> float:
        return NEVER


def _types_of_jobs(state: State, there: Mapping[str, int]) -> dict[str, list[int]]:
    """A job is on one type at a time: where most is left of what others there can use, else where fewest share it.

    Who has the least choice comes first, then who can use most. Members of a type are in the order of submission.
    """
    if len(there) == 1:
        return {kind: list(state.active) for kind in there}
    n_left, members = dict(there), {kind: list[int]() for kind in there}
    for job in sorted(state.active, key=lambda job: (len(state.kinds(job)), -_most(state, job))):
        now = state.machines.kinds[state.placed[job][0][0]] if job in state.placed else ""
        kind = max(
            state.kinds(job),
            key=lambda one: (max(n_left[one], 0), there[one] / (len(members[one]) + 1), one == now),
        )
        members[kind].append(job)
        n_left[kind] -= state.n_most(job, kind)
    return {kind: sorted(jobs) for kind, jobs in members.items()}


def _most(state: State, job: int) -> int:
    return max(state.n_most(job, kind) for kind in state.kinds(job))


def _filled(state: State, jobs: Sequence[int], kind: str, n_devices: int) -> dict[int, int]:
    most = {job: state.n_most(job, kind) for job in jobs}
    return fill({job: (1.0,) for job in jobs}, (n_devices,), most, {job: state.n_least(job) for job in jobs})


def fill(
    demands: Mapping[int, Sequence[float]],
    capacity: ArrayLike,
    most: Mapping[int, int],
    least: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Tasks of each user by progressive filling; `demands` are those of one task, `most` the tasks a user has.

    With fewer than `least` tasks (one, where it is not said) a user does not begin.
    """
    left = np.array(capacity, dtype=float)
    whole = np.array(capacity, dtype=float)
    tasks = dict.fromkeys(demands, 0)
    need = {user: np.array(demand, dtype=float) for user, demand in demands.items()}
    step = {
        user: float(np.max(np.divide(one, whole, out=np.zeros_like(one), where=whole > 0)))
        for user, one in need.items()
    }
    queue = [(0.0, number, user) for number, user in enumerate(demands)]
    heapq.heapify(queue)
    while queue:
        _, number, user = heapq.heappop(queue)
        n = 1 if tasks[user] or least is None else least[user]
        if tasks[user] + n <= most[user] and (n * need[user] <= left).all():
            left -= n * need[user]
            tasks[user] += n
            heapq.heappush(queue, (tasks[user] * step[user], number, user))
    return tasks
