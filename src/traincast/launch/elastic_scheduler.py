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
from traincast.launch.elastic_crew import Crew, Ended, dismiss, outcome, start_tasks
from traincast.launch.elastic_events import BEGIN, END, START, Event, EventLog
from traincast.launch.elastic_history import MOST_FRUITLESS, is_fruitless, is_over, of_job
from traincast.launch.elastic_job import ElasticJob, JobFolder
from traincast.launch.elastic_state import Snapshot
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST
from traincast.scheduling.decision import Placement, Policy
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds

DECIDE = "decide"
KIND = "CPU"
_POLL_S = 0.2
OnEvent = Callable[[Event], None]


def cluster_machines(nodes: Sequence[Mapping[str, Any]]) -> tuple[Machines, list[str]]:
    """The nodes of a Ray cluster that are alive, with a device for each CPU, and their names."""
    found = [(str(node["NodeID"]), int(node["Resources"].get("CPU", 0))) for node in nodes if node["Alive"]]
    found = [(name, n_cpus) for name, n_cpus in found if n_cpus]
    if not found:
        raise InputError("No node of this Ray cluster has a CPU to train on.")
    counts = tuple(n_cpus for _, n_cpus in found)
    text = "+".join(f"1x{n}x{KIND}" for n in counts)
    return Machines(devices=counts, kinds=(KIND,) * len(counts), name=text), [name for name, _ in found]


class Scheduler:
    """Brings every job to its end. `jobs` and `forecasts` are in the order of submission and belong together."""

    def __init__(
        self, ray: Any, jobs: Sequence[ElasticJob], forecasts: Sequence[Job], folder: Path, log: EventLog
    ) -> None:
        self._ray, self._jobs, self._forecasts, self._log = ray, jobs, forecasts, log
        self._machines, self._nodes = cluster_machines(ray.nodes())
        self._speeds = Speeds(self._machines)
        self._folders = [JobFolder(folder / "jobs" / job.name) for job in jobs]
        self._crews: dict[int, Crew] = {}
        self._wanted: Mapping[int, Placement] = {}
        self._is_stopping: set[int] = set()
        self._tell: OnEvent = lambda _: None

    def run(self, policy: Policy, *, interval_s: float, on_event: OnEvent | None = None) -> None:
        """Until all jobs are finished or given up."""
        self._tell = on_event or self._tell
        self._begin(policy, interval_s)
        next_s, seen, wakes_s = 0.0, None, math.inf
        try:
            while any(not is_over(self._log.events, job.name) for job in self._jobs):
                self._reap()
                if self._log.now_s >= next_s:
                    state = self._snapshot()
                    now_seen = (tuple(state.active), tuple(state.capacity))
                    if state.active and (now_seen != seen or wakes_s <= state.now_s):
                        self._decide(policy, state)
                        seen, wakes_s = now_seen, policy.wakes_s(state)
                    next_s = (math.floor(self._log.now_s / interval_s) + 1) * interval_s
                self._bring_about()
                time.sleep(_POLL_S)
        finally:
            for crew in self._crews.values():
                dismiss(self._ray, crew)

    def _begin(self, policy: Policy, interval_s: float) -> None:
        """First: what the simulation of the same policy expects. Again: what the one before left unfinished."""
        if not self._log.events:
            plan = simulate_policy(
                self._forecasts, self._machines, policy, Rules(interval_s=interval_s), speeds=self._speeds
            )
            self._add(BEGIN, planned_finish_s={job.name: job.finish_s for job in plan.jobs}, policy=policy.name)
        else:
            self._add(BEGIN, policy=policy.name)
        for job, folder in zip(self._jobs, self._folders, strict=True):
            folder.path.mkdir(parents=True, exist_ok=True)
            starts, n_ends = of_job(self._log.events, job.name, START), len(of_job(self._log.events, job.name, END))
            if len(starts) > n_ends:
                # Its workers ended with their scheduler; what it had is counted until it was last heard of.
                had_s = max((folder.told_s() or 0.0) - self._log.begun_s - starts[-1].now_s, 0.0)
                ended = Ended(FINISHED) if folder.is_finished else Ended(LOST, "The scheduler ended.")
                self._ended(job, folder, ended, device_s=had_s * starts[-1].values["n_devices"])

    def _reap(self) -> None:
        for number, crew in list(self._crews.items()):
            ended = outcome(self._ray, crew)
            if ended is None:
                continue
            del self._crews[number]
            self._is_stopping.discard(number)
            job, folder = self._jobs[number], self._folders[number]
            folder.forget(crew.attempt)
            self._ended(job, folder, ended, device_s=crew.n_workers * (self._log.now_s - crew.since_s))
            if is_fruitless(self._log.events, job.name):
                why = f"Its workers died {MOST_FRUITLESS} times without a step more. {ended.why}"
                self._ended(job, folder, Ended(FAILED, why), device_s=0.0)

    def _ended(self, job: ElasticJob, folder: JobFolder, ended: Ended, *, device_s: float) -> None:
        progress = folder.progress()
        step = 0 if progress is None else progress.step
        self._add(END, job.name, how=ended.how, why=ended.why, step=step, device_s=device_s)

    def _decide(self, policy: Policy, state: Snapshot) -> None:
        wanted = dict(policy.decide(state).placements)
        if wanted != self._wanted:
            devices = {self._jobs[job].name: sum(n for _, n in wanted[job]) for job in wanted}
            self._add(DECIDE, devices=devices)
        self._wanted = wanted

    def _bring_about(self) -> None:
        """Stop who is to be elsewhere; start who waits, once its places are free."""
        for number, crew in self._crews.items():
            if self._wanted.get(number) != crew.placement and number not in self._is_stopping:
                self._is_stopping.add(number)
                self._folders[number].ask_to_stop(crew.attempt)
        state = self._snapshot()
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
        tasks = start_tasks(self._ray, job, placement, self._nodes, folder=str(folder.path.resolve()), attempt=attempt)
        self._crews[number] = Crew(placement=placement, attempt=attempt, since_s=event.now_s, tasks=tasks)

    def _snapshot(self) -> Snapshot:
        events, now_s = self._log.events, self._log.now_s
        alive = {str(node["NodeID"]) for node in self._ray.nodes() if node["Alive"]}
        had = [sum(end.values["device_s"] for end in of_job(events, job.name, END)) for job in self._jobs]
        for number, crew in self._crews.items():
            had[number] += crew.n_workers * (now_s - crew.since_s)
        told = {number: folder.progress() for number, folder in enumerate(self._folders)}
        return Snapshot(
            now_s=now_s,
            machines=self._machines,
            capacity=[n if name in alive else 0 for name, n in zip(self._nodes, self._machines.devices, strict=True)],
            jobs=self._forecasts,
            speeds=self._speeds,
            active={
                number: None
                for number, job in enumerate(self._jobs)
                if job.submit_s <= now_s and not is_over(events, job.name)
            },
            placed={number: crew.placement for number, crew in self._crews.items()},
            n_starts=[len(of_job(events, job.name, START)) for job in self._jobs],
            device_s=had,
            progress={number: progress for number, progress in told.items() if progress is not None},
        )

    def _add(self, what: str, job: str = "", **values: Any) -> Event:
        event = self._log.add(what, job, **values)
        self._tell(event)
        return event
