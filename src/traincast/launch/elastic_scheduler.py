"""A policy drives real jobs: every interval it says who runs where, and between decisions the cluster is brought there.

A job whose place changes stops with a checkpoint and starts again with as many workers as it has devices. All that
happened is in the event log, so that a scheduler that was killed and started again goes on where it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traincast.errors import InputError
from traincast.launch.elastic_crew import KIND, Cluster, Crew, Ended
from traincast.launch.elastic_events import BEGIN, END, START, Event, EventLog
from traincast.launch.elastic_history import MOST_FRUITLESS, ORPHANED, is_fruitless, is_over
from traincast.launch.elastic_job import ElasticJob, JobFolder
from traincast.launch.elastic_state import Snapshot
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST, STOPPED
from traincast.scheduling.checks import check_jobs
from traincast.scheduling.decision import Placement, Policy
from traincast.scheduling.job import Job
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds

DECIDE = "decide"
_POLL_S = 0.2
_LONGEST_STOP_S = 120.0  # then a crew is ended by force: its tasks may not even have begun
OnEvent = Callable[[Event], None]


class Scheduler:
    """Brings every job to its end. `jobs` and `forecasts` are in the order of submission and belong together."""

    def __init__(
        self, cluster: Cluster, jobs: Sequence[ElasticJob], forecasts: Sequence[Job], folder: Path, log: EventLog
    ) -> None:
        self._cluster, self._jobs, self._forecasts, self._log = cluster, jobs, forecasts, log
        self._machines = cluster.machines
        self._speeds = Speeds(self._machines)
        self._folders = [JobFolder(folder / "jobs" / job.name) for job in jobs]
        self._crews: dict[int, Crew] = {}
        self._wanted: Mapping[int, Placement] = {}
        self._asked_s: dict[int, float] = {}  # since when a crew is asked to stop
        self._tell: OnEvent = lambda _: None

    def run(self, policy: Policy, *, interval_s: float, on_event: OnEvent | None = None) -> None:
        """Until all jobs are finished or given up."""
        self._tell = on_event or self._tell
        self._begin(policy, interval_s)
        chosen = policy.fresh(0)
        next_s, seen, wakes_s = 0.0, None, math.inf
        try:
            while not all(self._is_over(job) for job in self._jobs):
                are_alive = self._cluster.are_alive()
                self._reap(are_alive)
                state = self._snapshot(are_alive)
                if state.now_s >= next_s:
                    now_seen = (tuple(state.active), tuple(state.capacity))
                    if state.active and (now_seen != seen or wakes_s <= state.now_s):
                        self._decide(chosen, state)
                        seen, wakes_s = now_seen, chosen.wakes_s(state)
                        self._check_that_it_goes_on(chosen, state)
                    next_s = (math.floor(self._log.now_s / interval_s) + 1) * interval_s
                self._bring_about(state)
                time.sleep(_POLL_S)
        finally:
            for crew in self._crews.values():
                self._cluster.dismiss(crew)

    def _is_over(self, job: ElasticJob) -> bool:
        return is_over(self._log.of_job(job.name, END))

    def _begin(self, policy: Policy, interval_s: float) -> None:
        """First: what the simulation of the same policy expects. Again: what the one before left unfinished."""
        left = [one for job, one in zip(self._jobs, self._forecasts, strict=True) if not self._is_over(job)]
        if left:
            check_jobs(left, self._machines, self._speeds, adapts_batch=policy.adapts_batch)
        if not self._log.events:
            plan = simulate_policy(
                self._forecasts, self._machines, policy, Rules(interval_s=interval_s), speeds=self._speeds
            )
            self._add(BEGIN, planned_finish_s={job.name: job.finish_s for job in plan.jobs}, policy=policy.name)
        else:
            self._add(BEGIN, policy=policy.name)
        for job, folder in zip(self._jobs, self._folders, strict=True):
            folder.path.mkdir(parents=True, exist_ok=True)
            self._take_over(job, folder)

    def _take_over(self, job: ElasticJob, folder: JobFolder) -> None:
        """Workers end with their scheduler; what they had is counted until they were last heard of."""
        starts, ends = self._log.of_job(job.name, START), self._log.of_job(job.name, END)
        if not starts or (ends and ends[-1].number > starts[-1].number):
            return
        had_s = max((folder.told_s() or 0.0) - self._log.begun_s - starts[-1].now_s, 0.0)
        finished_s = folder.finished_s()
        ended = Ended(FINISHED) if finished_s is not None else Ended(ORPHANED, "The scheduler ended.")
        ended_s = self._log.now_s if finished_s is None else finished_s - self._log.begun_s
        self._ended(job, folder, ended, device_s=had_s * starts[-1].values["n_devices"], ended_s=ended_s)

    def _reap(self, are_alive: Sequence[bool]) -> None:
        for number, crew in list(self._crews.items()):
            ended = self._outcome(number, crew, are_alive)
            if ended is None:
                continue
            del self._crews[number]
            self._asked_s.pop(number, None)
            job, folder = self._jobs[number], self._folders[number]
            folder.forget(crew.attempt)
            self._ended(job, folder, ended, device_s=crew.n_workers * (self._log.now_s - crew.since_s))
            if is_fruitless(self._log.of_job(job.name, END)):
                why = f"Its workers died {MOST_FRUITLESS} times without completing another step. {ended.why}"
                self._ended(job, folder, Ended(FAILED, why), device_s=0.0)

    def _outcome(self, number: int, crew: Crew, are_alive: Sequence[bool]) -> Ended | None:
        """A crew on a node that is gone is lost, whatever its tasks have said so far."""
        ended = self._cluster.outcome(crew)
        if ended is not None:
            return ended
        if not all(are_alive[node] for node, _ in crew.placement):
            ended = Ended(LOST, "A node was lost.")
        elif self._log.now_s - self._asked_s.get(number, math.inf) > _LONGEST_STOP_S:
            ended = Ended(STOPPED, "By force.")
        if ended is not None:
            self._cluster.dismiss(crew)
        return ended

    def _ended(
        self, job: ElasticJob, folder: JobFolder, ended: Ended, *, device_s: float, ended_s: float | None = None
    ) -> None:
        progress = folder.progress()
        step = 0 if progress is None else progress.step
        at_s = self._log.now_s if ended_s is None else ended_s
        self._add(END, job.name, how=ended.how, why=ended.why, step=step, device_s=device_s, ended_s=at_s)

    def _decide(self, policy: Policy, state: Snapshot) -> None:
        wanted = dict(policy.decide(state).placements)
        if wanted != self._wanted:
            devices = {self._jobs[job].name: sum(n for _, n in wanted[job]) for job in wanted}
            self._add(DECIDE, devices=devices)
        self._wanted = wanted

    def _check_that_it_goes_on(self, policy: Policy, state: Snapshot) -> None:
        """Nobody runs, nobody is to run and nobody is to come: what is left of the cluster is too small."""
        if not self._wanted and not self._crews and all(job.submit_s <= state.now_s for job in self._jobs):
            job = self._forecasts[next(iter(state.active))]
            raise InputError(
                f"'{policy.name}' cannot start job '{job.name}', which asks for {job.n_devices} devices, on the "
                f"{sum(state.capacity)} that are left: start again, on more of them."
            )

    def _bring_about(self, state: Snapshot) -> None:
        """Stop who is to be elsewhere; start who waits, once its places are free."""
        for number, crew in self._crews.items():
            if self._wanted.get(number) != crew.placement and number not in self._asked_s:
                self._asked_s[number] = self._log.now_s
                self._folders[number].ask_to_stop(crew.attempt)
        free = state.free
        for number, placement in self._wanted.items():
            is_idle = number in state.active and number not in self._crews
            if is_idle and all(free[node] >= n for node, n in placement):
                self._start(number, placement, state)
                for node, n in placement:
                    free[node] -= n

    def _start(self, number: int, placement: Placement, state: Snapshot) -> None:
        job, folder = self._jobs[number], self._folders[number]
        n_devices, attempt = sum(n for _, n in placement), state.n_starts[number]
        left_s = float(state.remaining_s(number, KIND)[n_devices])
        event = self._add(
            START,
            job.name,
            n_devices=n_devices,
            expected_finish_s=self._log.now_s + self._forecasts[number].restart_s + left_s,
        )
        tasks = self._cluster.start(job, placement, folder=str(folder.path.resolve()), attempt=attempt)
        self._crews[number] = Crew(placement=placement, attempt=attempt, since_s=event.now_s, tasks=tasks)

    def _snapshot(self, are_alive: Sequence[bool]) -> Snapshot:
        now_s, names = self._log.now_s, [job.name for job in self._jobs]
        had = [sum(end.values["device_s"] for end in self._log.of_job(name, END)) for name in names]
        for number, crew in self._crews.items():
            had[number] += crew.n_workers * (now_s - crew.since_s)
        active = {
            number: None for number, job in enumerate(self._jobs) if job.submit_s <= now_s and not self._is_over(job)
        }
        told = {number: self._folders[number].progress() for number in active}
        return Snapshot(
            now_s=now_s,
            machines=self._machines,
            capacity=[n if is_up else 0 for is_up, n in zip(are_alive, self._machines.devices, strict=True)],
            jobs=self._forecasts,
            speeds=self._speeds,
            active=active,
            placed={number: crew.placement for number, crew in self._crews.items()},
            n_starts=[len(self._log.of_job(name, START)) for name in names],
            device_s=had,
            progress={number: progress for number, progress in told.items() if progress is not None},
        )

    def _add(self, what: str, job: str = "", **values: Any) -> Event:
        event = self._log.add(what, job, **values)
        self._tell(event)
        return event
