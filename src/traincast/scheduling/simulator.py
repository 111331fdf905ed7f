"""From event to event: submissions, ends, failures, and the decisions of a policy.

Between decisions speeds are constant, so ends are computed and time jumps to the next event. A policy is asked at
multiples of the interval (0: at every event), and only where its answer can have changed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from traincast.errors import InputError
from traincast.scheduling.decision import Decision, Policy
from traincast.scheduling.failures import FailureClock, Failures
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.machines import Machines
from traincast.scheduling.schedule import JobRecord, Moment, Schedule, Span
from traincast.scheduling.speeds import Speeds

INTERVAL_S = 60.0  # as in Pollux' simulator
_MOST_IDLE_DECISIONS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the cluster is run, whatever the policy."""

    interval_s: float = INTERVAL_S  # between decisions; 0: at every submission and end
    failures: Failures | None = None
    work_sigma: float = 0.0  # errors of forecasts: see ForecastErrors
    speed_sigma: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.interval_s) and self.interval_s >= 0):
            raise InputError(f"The interval between decisions should be 0 s or more, not {self.interval_s:g}.")


@dataclass(slots=True)
class _Log:
    spans: list[Span] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    n_failures: int = 0


def simulate_policy(
    jobs: Sequence[Job],
    machines: Machines,
    policy: Policy,
    rules: Rules | None = None,
    *,
    speeds: Speeds | None = None,
) -> Schedule:
    """Run all jobs to their ends. `speeds` may be shared between runs on the same machines."""
    rules = rules or Rules()
    speeds = speeds or Speeds(machines)
    ordered = sorted(jobs, key=lambda job: job.submit_s)
    _check(ordered, machines, speeds, adapts_batch=policy.adapts_batch)
    return _Simulation(ordered, machines, policy, rules, speeds).run()


def _check(jobs: Sequence[Job], machines: Machines, speeds: Speeds, *, adapts_batch: bool) -> None:
    if not jobs:
        raise InputError("There are no jobs to schedule.")
    names = set()
    there = {kind: machines.n_devices_of(kind) for kind in machines.types}
    for job in jobs:
        if job.name in names:
            raise InputError(f"Two jobs are named '{job.name}': each needs a name of its own.")
        names.add(job.name)
        kinds = speeds.kinds(job.profile_for(adapts_batch=adapts_batch))
        if not kinds:
            needed = " or ".join(job.profile.kinds or ())
            raise InputError(f"Job '{job.name}' runs on {needed}, which '{machines.name}' does not have.")
        most = max(there[kind] for kind in kinds)
        if job.n_devices > most:
            raise InputError(
                f"Job '{job.name}' asks for {job.n_devices} devices, and '{machines.name}' has {most} that it can use."
            )


class _Simulation:
    def __init__(self, jobs: Sequence[Job], machines: Machines, policy: Policy, rules: Rules, speeds: Speeds) -> None:
        errors = ForecastErrors(len(jobs), rules.seed, rules.work_sigma, rules.speed_sigma)
        self.live = Live(jobs, machines, speeds, adapts_batch=policy.adapts_batch, errors=errors)
        self.jobs, self.machines, self.policy, self.rules = jobs, machines, policy, rules
        self.clock = FailureClock(rules.failures, machines.n_nodes)
        self.ends: list[tuple[float, int, int]] = []  # a heap of end, job, its start number
        self.n_submitted = 0
        self.finish_s = [math.nan] * len(jobs)
        self.first_s = [math.nan] * len(jobs)
        self.log = _Log()
        self.n_idle = 0
        self.decided_s = -rules.interval_s

    def run(self) -> Schedule:
        n_left = len(self.jobs)
        is_changed = True
        wakes_s = math.inf
        while n_left:
            look_s = self._next_look(is_changed, wakes_s)
            end_s = self._next_end()
            failure_s = self.clock.next_s
            if end_s <= min(look_s, failure_s):
                self._finish(heapq.heappop(self.ends)[1], end_s)
                n_left -= 1
                is_changed = True
            elif failure_s < look_s:
                self.live.now_s = failure_s
                self._fail_or_repair()
                is_changed = True
            else:
                self.live.now_s = look_s
                self._submit()
                self._decide()
                self.decided_s = look_s
                is_changed = False
                wakes_s = self.policy.wakes_s(self.live)
        return self._schedule()

    def _next_look(self, is_changed: bool, wakes_s: float) -> float:
        """The first decision at which the answer can differ from the last."""
        now = self.live.now_s
        soonest = self.jobs[self.n_submitted].submit_s if self.n_submitted < len(self.jobs) else math.inf
        interval = self.rules.interval_s
        if self.live.active and is_changed:
            soonest = min(soonest, now)
        elif self.live.active and (interval > 0 or wakes_s > now):  # without intervals, "every time" is every event
            soonest = min(soonest, wakes_s)
        if soonest == math.inf:
            return math.inf
        if interval == 0:
            return max(soonest, now)
        first = math.floor(self.decided_s / interval + 1e-9) + 1
        return max(first, math.ceil(max(soonest, now) / interval - 1e-9)) * interval

    def _next_end(self) -> float:
        while self.ends:
            end_s, job, number = self.ends[0]
            if job in self.live.placed and self.live.n_starts[job] == number:
                return end_s
            heapq.heappop(self.ends)
        return math.inf

    def _submit(self) -> None:
        while self.n_submitted < len(self.jobs) and self.jobs[self.n_submitted].submit_s <= self.live.now_s:
            self.live.active[self.n_submitted] = None
            self.n_submitted += 1

    def _finish(self, job: int, now_s: float) -> None:
        self.live.now_s = now_s
        self._stop(job)
        del self.live.active[job]
        self.finish_s[job] = now_s

    def _stop(self, job: int, *, kept_until_s: float | None = None) -> None:
        run = self.live.stop(job, kept_until_s=kept_until_s)
        self.log.spans.append(
            Span(job, run.since_s, min(run.begins_s, self.live.now_s), self.live.now_s, run.placement)
        )

    def _fail_or_repair(self) -> None:
        node, is_up = self.clock.pop()
        if is_up or self.rules.failures is None:
            self.live.set_capacity(node, self.machines.devices[node])
            return
        self.log.n_failures += 1
        checkpoint_s = self.rules.failures.checkpoint_s
        for job in [job for job, placement in self.live.placed.items() if any(n == node for n, _ in placement)]:
            begins = self.live.begins_s(job)
            n_saved = math.floor(max(self.live.now_s - begins, 0.0) / checkpoint_s)
            self._stop(job, kept_until_s=begins + n_saved * checkpoint_s)
        self.live.set_capacity(node, 0)

    def _decide(self) -> None:
        live = self.live
        decision = self.policy.decide(live)
        placed, servers = decision.placements, decision.servers
        changed = [job for job, placement in live.placed.items() if placed.get(job) != placement]
        if servers or live.servers:
            changed += [job for job in live.placed if servers.get(job, 0) != live.servers.get(job, 0)]
        for job in dict.fromkeys(changed):
            self._stop(job)
        for job in [job for job in placed if job not in live.placed]:
            self._start(job, decision)
        n_used = sum(live.capacity) - sum(live.free)
        self.log.moments.append(Moment(live.now_s, len(live.active) - len(live.placed), len(live.placed), n_used))
        self._check_that_it_goes_on()

    def _start(self, job: int, decision: Decision) -> None:
        """A device is given once, and only to a job that is there: else the policy is wrong."""
        live, placement = self.live, decision.placements[job]
        is_there = job in live.active and bool(placement) and all(n > 0 for _, n in placement)
        if not is_there or any(live.free[node] < n for node, n in placement):
            raise AssertionError(f"{self.policy.name} places job {job} on {placement}: that is not free")
        end_s = live.start(job, placement, decision.servers.get(job, 0))
        if math.isnan(self.first_s[job]):
            self.first_s[job] = live.now_s
        heapq.heappush(self.ends, (end_s, job, live.n_starts[job]))

    def _check_that_it_goes_on(self) -> None:
        """With nothing running and nothing to come, a policy that leaves jobs waiting would never end."""
        live = self.live
        is_stuck = not live.placed and live.active and self.n_submitted == len(self.jobs)
        self.n_idle = self.n_idle + 1 if is_stuck and all(live.capacity) else 0
        wakes_s = self.policy.wakes_s(live)
        if self.n_idle and (wakes_s == math.inf or self.n_idle > _MOST_IDLE_DECISIONS):
            job = self.jobs[next(iter(live.active))]
            raise InputError(f"'{self.policy.name}' never starts job '{job.name}' on '{self.machines.name}'.")

    def _schedule(self) -> Schedule:
        records = tuple(
            JobRecord(
                name=job.name,
                kind=job.profile.name,
                submit_s=job.submit_s,
                start_s=self.first_s[number],
                finish_s=self.finish_s[number],
                n_restarts=self.live.n_starts[number] - 1,
                device_s=float(self.live.attained_device_s([number])[0]),
                alone_s=self.live.alone_s(number),
            )
            for number, job in enumerate(self.jobs)
        )
        return Schedule(
            policy=self.policy.name,
            machines=self.machines,
            jobs=records,
            spans=tuple(self.log.spans),
            moments=tuple(self.log.moments),
            n_failures=self.log.n_failures,
        )
