"""Tiresias (Gu et al., NSDI 2019): discretised two-dimensional least attained service.

A job's service is its devices times the seconds it has run. Jobs whose service is below a threshold are in the first
queue, the others in the next; a queue is served before the next, each in the order in which its members came to it, and
running jobs give way. Nothing is known of how long a job will take. As in Pollux' simulator there are two queues,
parted at 16 device-hours, a job that does not fit is passed over, and there is no promotion back: a demoted job waits
for as long as the first queue fills the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from traincast.scheduling.decision import NEVER, Decision, State
from traincast.scheduling.placing import place
from traincast.scheduling.policies.rigid import grant_as_asked

DEMOTION_DEVICE_S = 16 * 3600.0
_ROUNDING = 1e-12  # a moment worked out as that of a demotion may lie just before it


@dataclass(eq=False, slots=True)
class Tiresias:
    """Discretised least attained service."""

    name: str = "tiresias"
    adapts_batch: bool = False
    is_random: bool = False
    thresholds_device_s: Sequence[float] = (DEMOTION_DEVICE_S,)
    _queues: list[dict[int, None]] = field(default_factory=list)
    _next_s: float = NEVER

    def fresh(self, seed: int) -> Tiresias:
        return Tiresias(thresholds_device_s=self.thresholds_device_s)

    def decide(self, state: State) -> Decision:
        self._sort(state)
        order = [job for queue in self._queues for job in queue]
        grants = grant_as_asked(state, order, is_strict=False)
        self._next_s = self._next_demotion_s(state, grants)
        return Decision(place(state, grants))

    def wakes_s(self, state: State) -> float:
        return self._next_s

    def _sort(self, state: State) -> None:
        """Who comes joins the first queue, who has had enough the next."""
        if not self._queues:
            self._queues = [{} for _ in range(len(self.thresholds_device_s) + 1)]
        for queue in self._queues:
            for job in [job for job in queue if job not in state.active]:
                del queue[job]
        known = set().union(*self._queues)
        self._queues[0].update((job, None) for job in state.active if job not in known)
        for number, threshold in enumerate(self.thresholds_device_s):
            members = list(self._queues[number])
            has_had = state.attained_device_s(members) >= threshold * (1 - _ROUNDING)
            for job in np.array(members, dtype=int)[has_had].tolist():
                del self._queues[number][job]
                self._queues[number + 1][job] = None

    def _next_demotion_s(self, state: State, running: dict[int, tuple[str, int]]) -> float:
        """When the first of those that run has had enough."""
        soonest = NEVER
        for queue, threshold in zip(self._queues, self.thresholds_device_s, strict=False):
            jobs = [job for job in queue if job in running]
            if jobs:
                counts = np.array([running[job][1] for job in jobs])
                left = (threshold - state.attained_device_s(jobs)) / counts
                soonest = min(soonest, state.now_s + float(left.min()))
        return soonest
