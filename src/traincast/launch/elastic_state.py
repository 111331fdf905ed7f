"""Real jobs as a policy sees them (`scheduling.decision.State`): what is told by their workers, not computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.launch.elastic_job import Progress
from traincast.scheduling.decision import Placement
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines
from traincast.scheduling.speeds import Speeds

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Snapshot:
    """The cluster at one moment. Forecasts of a job are scaled by how fast it really went when last seen."""

    now_s: float
    machines: Machines
    capacity: Sequence[int]
    jobs: Sequence[Job]
    speeds: Speeds
    active: Mapping[int, None]
    placed: Mapping[int, Placement]  # on nodes that are alive
    n_starts: Sequence[int]
    device_s: Sequence[float]  # devices times seconds that each job has had
    progress: Mapping[int, Progress]

    @property
    def held(self) -> dict[int, int]:
        """How many devices each running job has."""
        return {job: sum(n for _, n in placement) for job, placement in self.placed.items()}

    @property
    def servers(self) -> dict[int, int]:
        return {}

    @property
    def free(self) -> list[int]:
        """Devices of each node that nobody has."""
        left = list(self.capacity)
        for placement in self.placed.values():
            for node, n in placement:
                left[node] -= n
        return left

    def position(self, job: int) -> float:
        """Part of its steps that is done."""
        found = self.progress.get(job)
        return 0.0 if found is None else found.fraction

    def slowness(self, job: int) -> float:
        """Seconds that its steps took over those forecast; 1 before any was seen."""
        found = self.progress.get(job)
        if found is None or found.step_s is None:
            return 1.0
        forecast_s = self._table_s(job)
        return found.step_s * found.n_steps / float(forecast_s[min(found.n_workers, len(forecast_s) - 1)])

    def kinds(self, job: int) -> tuple[str, ...]:
        return self.speeds.kinds(self.jobs[job].profile)

    def n_least(self, job: int) -> int:
        return self.jobs[job].profile.min_devices

    def n_most(self, job: int, kind: str) -> int:
        return self.speeds.most(self.jobs[job].profile, kind)

    def remaining_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds until the end with 0, 1, 2, ... devices; infinite with none."""
        left = self._table_s(job) * (self.slowness(job) * (1.0 - self.position(job)))
        left[0] = np.inf
        return left

    def whole_s(self, job: int, kind: str) -> Floats:
        """The same for the whole job."""
        seconds = self._table_s(job) * self.slowness(job)
        seconds[0] = np.inf
        return seconds

    def segment_s(self, job: int, kind: str) -> Floats:
        """A job has one segment."""
        return self.whole_s(job, kind)

    def requested_s(self, jobs: Sequence[int]) -> Floats:
        kind = self.machines.types[0]
        left = [self.remaining_s(job, kind) for job in jobs]
        wanted = [self.jobs[job].n_devices for job in jobs]
        return np.array([float(one[min(n, len(one) - 1)]) for one, n in zip(left, wanted, strict=True)])

    def attained_device_s(self, jobs: Sequence[int]) -> Floats:
        return np.array([self.device_s[job] for job in jobs])

    def _table_s(self, job: int) -> Floats:
        return np.array(self.speeds.table_s(self.jobs[job].profile, self.machines.types[0])[:, -1])
