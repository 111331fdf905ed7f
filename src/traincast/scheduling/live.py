"""The cluster in motion: where every job is, exactly, at any moment between two decisions."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import Placement
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines, shape_of
from traincast.scheduling.profile import Profile
from traincast.scheduling.speeds import Speeds, after

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Run:
    """A job on its devices since `since_s`. It advances from `begins_s` on: before that it restarts."""

    placement: Placement
    n_servers: int
    n_devices: int
    ends_s: list[float]
    since_s: float
    begins_s: float
    from_s: float  # of its own time line, where it began
    finish_s: float


class Live:
    """The state that policies see (`decision.State`), and how it changes."""

    def __init__(
        self, jobs: Sequence[Job], machines: Machines, speeds: Speeds, *, adapts_batch: bool, errors: ForecastErrors
    ) -> None:
        self.now_s = 0.0
        self.machines = machines
        self.capacity = list(machines.devices)
        self.free = list(machines.devices)
        self.jobs = jobs
        self.speeds = speeds
        self.errors = errors
        self.profiles: list[Profile] = [job.profile_for(adapts_batch=adapts_batch) for job in jobs]
        self.active: dict[int, None] = {}
        self.placed: dict[int, Placement] = {}
        self.held: dict[int, int] = {}
        self.servers: dict[int, int] = {}
        self.n_starts = [0] * len(jobs)
        self._kind_numbers = {kind: number for number, kind in enumerate(machines.types)}
        self._runs: dict[int, _Run] = {}
        self._positions = [0.0] * len(jobs)  # when the job last stopped
        self._attained = np.zeros(len(jobs))  # until then
        self._waiting_s = np.full(len(jobs), np.nan)  # forecast with the devices asked for, while it waits

    def position(self, job: int) -> float:
        """Segments done, with the fraction of the current one."""
        run = self._runs.get(job)
        return self._positions[job] if run is None else self._position_at(job, run, self.now_s)

    def _position_at(self, job: int, run: _Run, now_s: float) -> float:
        if now_s <= run.begins_s:
            return self._positions[job]
        at_s = run.from_s + (now_s - run.begins_s) / self.jobs[job].length
        ends = run.ends_s
        whole = min(bisect_right(ends, at_s) - 1, len(ends) - 2)
        return min(whole + (at_s - ends[whole]) / (ends[whole + 1] - ends[whole]), len(ends) - 1.0)

    @property
    def even_until_s(self) -> float:
        """Until when each that runs keeps its pace: the next end of a restart or a segment. Infinite: nobody runs."""
        return min((self._even_until_s(job, run) for job, run in self._runs.items()), default=np.inf)

    def _even_until_s(self, job: int, run: _Run) -> float:
        if self.now_s < run.begins_s:
            return run.begins_s
        length = self.jobs[job].length
        at_s = run.from_s + (self.now_s - run.begins_s) / length
        corner = min(bisect_right(run.ends_s, at_s), len(run.ends_s) - 1)
        return run.begins_s + (run.ends_s[corner] - run.from_s) * length

    def later(self, at_s: float) -> Live:
        """The same cluster at that moment, to be looked at only: it shares all else with this one."""
        later = copy.copy(self)
        later.now_s = at_s
        return later

    def kinds(self, job: int) -> tuple[str, ...]:
        """Types of device that are there and that it can run on."""
        return self.speeds.kinds(self.profiles[job])

    def n_least(self, job: int) -> int:
        """Devices without which it does not run."""
        return self.profiles[job].min_devices

    def n_most(self, job: int, kind: str) -> int:
        """Devices of a type that it can use."""
        return self.speeds.most(self.profiles[job], kind)

    def whole_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds of the whole job with 0, 1, 2, ... devices of a type; infinite where it does not run."""
        return self._forecast(job, kind, self.speeds.table_s(self.profiles[job], kind)[:, -1])

    def remaining_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds until the end with 0, 1, 2, ... devices of a type; infinite where it does not run."""
        table = self.speeds.table_s(self.profiles[job], kind)
        position = self.position(job)
        whole = min(int(position), table.shape[1] - 2)
        done = table[:, whole] + (position - whole) * (table[:, whole + 1] - table[:, whole])
        return self._forecast(job, kind, table[:, -1] - done)

    def segment_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds of the segment it is in with 0, 1, 2, ... devices; infinite where it does not run."""
        table = self.speeds.table_s(self.profiles[job], kind)
        whole = min(int(self.position(job)), table.shape[1] - 2)
        return self._forecast(job, kind, table[:, whole + 1] - table[:, whole])

    def _forecast(self, job: int, kind: str, true_s: Floats) -> Floats:
        """What is forecast of seconds by number of devices, for a job of length 1."""
        seconds = np.asarray(true_s * self.jobs[job].length)
        seconds[: self.profiles[job].min_devices] = np.inf
        return self.errors.apply(job, seconds, self._kind_numbers[kind])

    def requested_s(self, jobs: Sequence[int]) -> Floats:
        """Forecast seconds until the end with the devices that were asked for."""
        left = np.empty(len(jobs))
        for place, job in enumerate(jobs):
            run = self._runs.get(job)
            n_devices = self.jobs[job].n_devices
            if run is not None and run.n_devices == n_devices:
                kind = self.machines.kinds[run.placement[0][0]]
                factor = self.errors.factor(job, n_devices, self._kind_numbers[kind])
                left[place] = (run.finish_s - max(self.now_s, run.begins_s)) * factor
            else:
                if np.isnan(self._waiting_s[job]) or run is not None:
                    self._waiting_s[job] = self._as_asked_s(job, self.position(job))
                left[place] = self._waiting_s[job]
        return left

    def _as_asked_s(self, job: int, position: float) -> float:
        """Forecast seconds from a position on, on the type of device that is fastest by the forecast."""
        profile, n, length = self.profiles[job], self.jobs[job].n_devices, self.jobs[job].length
        seconds = []
        for kind in self.speeds.kinds(profile):
            row = _row(self.speeds.table_s(profile, kind), n)
            factor = self.errors.factor(job, n, self._kind_numbers[kind])
            seconds.append((row[-1] - after(row, position)) * length * factor)
        return min(seconds)

    def alone_s(self, job: int) -> float:
        """What the job as submitted takes with the devices it asked for, on the fastest type, once it has started."""
        profile, n = self.jobs[job].profile, self.jobs[job].n_devices
        tables = [self.speeds.table_s(profile, kind) for kind in self.speeds.kinds(profile)]
        return float(min(_row(table, n)[-1] for table in tables) * self.jobs[job].length)

    def attained_device_s(self, jobs: Sequence[int]) -> Floats:
        """Devices times seconds that each has had."""
        had = self._attained[np.asarray(jobs, dtype=int)]
        for place, job in enumerate(jobs):
            run = self._runs.get(job)
            if run is not None:
                had[place] += run.n_devices * (self.now_s - run.since_s)
        return had

    def start(self, job: int, placement: Placement, n_servers: int) -> float:
        """Run here from now on, after the restart; says when it will end."""
        n_devices = 0
        for node, n in placement:
            self.free[node] -= n
            n_devices += n
        kind = self.machines.kinds[placement[0][0]]
        ends = self.speeds.ends_s(self.profiles[job], shape_of(placement), kind, n_servers)
        begins = self.now_s + self.jobs[job].restart_s
        from_s = after(ends, self._positions[job])
        finish = begins + (ends[-1] - from_s) * self.jobs[job].length
        self._runs[job] = _Run(placement, n_servers, n_devices, ends, self.now_s, begins, from_s, finish)
        self.placed[job] = placement
        self.held[job] = n_devices
        if n_servers:
            self.servers[job] = n_servers
        self.n_starts[job] += 1
        return finish

    def stop(self, job: int, *, kept_until_s: float | None = None) -> _Run:
        """Take its devices; what it did after `kept_until_s` is lost (None: nothing is)."""
        run = self._runs.pop(job)
        until = self.now_s if kept_until_s is None else kept_until_s
        self._positions[job] = self._position_at(job, run, until)
        self._attained[job] += run.n_devices * (self.now_s - run.since_s)
        self._waiting_s[job] = np.nan
        for node, n in run.placement:
            self.free[node] += n
        del self.placed[job], self.held[job]
        self.servers.pop(job, None)
        return run

    def set_capacity(self, node: int, n_devices: int) -> None:
        """A node fails, or is back; nobody has a device there."""
        self.free[node] += n_devices - self.capacity[node]
        self.capacity[node] = n_devices

    def kept_position(self, job: int) -> float:
        """Where it was when it last stopped."""
        return self._positions[job]

    def begins_s(self, job: int) -> float:
        """When a running job's restart is over."""
        return self._runs[job].begins_s


def _row(table: Floats, n_devices: int) -> list[float]:
    """With so many devices, or as many as it can use."""
    row: list[float] = table[min(n_devices, len(table) - 1)].tolist()
    return row
