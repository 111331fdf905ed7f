"""Dominant resource fairness (Ghodsi et al., NSDI 2011).

A user's dominant share is the largest of its shares of any resource. Progressive filling: again and again, whoever has
the smallest dominant share gets the resources of one more task, until nothing fits. Here a job is a user and one worker
a task that needs one device; where devices are the only scarce resource this is max-min fairness of devices.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from traincast.scheduling.decision import NEVER, Decision, State
from traincast.scheduling.placing import Grant, place


@dataclass(frozen=True, slots=True)
class DominantFairness:
    """Everyone's dominant share grows together."""

    name: str = "drf"
    adapts_batch: bool = False

    def decide(self, state: State) -> Decision:
        grants: dict[int, Grant] = {}
        left = dict(state.active)
        for kind in state.machines.types:  # jobs that can use several types are counted with the first
            jobs = [job for job in left if kind in state.speeds.kinds(state.jobs[job].profile)]
            n_devices = sum(n for n, own in zip(state.capacity, state.machines.kinds, strict=True) if own == kind)
            most = {job: state.n_most(job, kind) for job in jobs}
            counts = fill({job: (1.0,) for job in jobs}, (n_devices,), most)
            grants |= {job: (kind, n) for job, n in counts.items() if n}
            left = {job: None for job in left if job not in grants}
        return Decision(place(state, grants))

    def wakes_s(self, state: State) -> float:
        return NEVER


def fill(demands: Mapping[int, Sequence[float]], capacity: ArrayLike, most: Mapping[int, int]) -> dict[int, int]:
    """Tasks of each user by progressive filling; `demands` are those of one task, `most` the tasks a user has."""
    left = np.array(capacity, dtype=float)
    whole = np.array(capacity, dtype=float)
    tasks = dict.fromkeys(demands, 0)
    need = {user: np.array(demand, dtype=float) for user, demand in demands.items()}
    step = {
        user: float(np.max(np.divide(one, whole, out=np.zeros_like(one), where=whole > 0)))
        for user, one in need.items()
    }
    queue = [(0.0, place_, user) for place_, user in enumerate(demands)]
    heapq.heapify(queue)
    while queue:
        _, place_, user = heapq.heappop(queue)
        if tasks[user] < most[user] and (need[user] <= left).all():
            left -= need[user]
            tasks[user] += 1
            heapq.heappush(queue, (tasks[user] * step[user], place_, user))
    return tasks
