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
from traincast.scheduling.checks import check_fits, check_jobs, check_start
from traincast.scheduling.decision import Decision, Foresighted, Policy
from traincast.scheduling.failures import FailureClock, Failures
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.machines import Machines
from traincast.scheduling.patience import Patience
from traincast.scheduling.schedule import JobRecord, Moment, Schedule, Span
from traincast.scheduling.speeds import Speeds
from traincast.scheduling.values import is_number, is_whole, told

INTERVAL_S = 60.0  # as in Pollux' simulator
LOOKS_AHEAD_AFTER = 20  # decisions in a row that change nothing: where much happens, looking ahead is no use
_IN_VAIN = 4  # where it was no use, it waits for a quarter as many decisions again
_ROUNDING = 1e-9  # of an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the cluster is run, whatever the policy."""

    interval_s: float = INTERVAL_S  # between decisions; 0: at every submission and end
    failures: Failures | None = None
    work_sigma: float = 0.0  # errors of forecasts: see ForecastErrors
    speed_sigma: float = 0.0
    seed: int = 0  # of failures, errors and what a policy observes

    def __post_init__(self) -> None:
        if not (is_whole(self.seed) and self.seed >= 0):
            raise InputError(f"A seed should be a whole number, 0 or more, not {self.seed!r}.")
        if not (is_number(self.interval_s) and self.interval_s >= 0):
            raise InputError(f"The interval between decisions should be 0 s or more, not {told(self.interval_s)}.")
        for what, sigma in (("work", self.work_sigma), ("speed", self.speed_sigma)):
            if not (is_number(sigma) and sigma >= 0):
                raise InputError(
                    f"The error of forecast {what} is a standard deviation and should be at least 0, not {told(sigma)}."
                )


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
    """Run all jobs to their ends. What the policy remembers is not touched: the run has one of its own.

    `speeds` may be shared between runs on the same machines.
    """
    rules = rules or Rules()
    speeds = speeds or Speeds(machines)
    ordered = sorted(jobs, key=lambda job: job.submit_s)
    check_jobs(ordered, machines, speeds, adapts_batch=policy.adapts_batch)
    check_fits(ordered, speeds, policy, rules.interval_s)
    return _Simulation(ordered, machines, policy.fresh(rules.seed), rules, speeds).run()


class _Simulation:
    def __init__(self, jobs: Sequence[Job], machines: Machines, policy: Policy, rules: Rules, speeds: Speeds) -> None:
        sigmas = [rules.work_sigma if job.work_sigma is None else job.work_sigma for job in jobs]
        errors = ForecastErrors(sigmas, rules.speed_sigma, rules.seed)
        self.live = Live(jobs, machines, speeds, adapts_batch=policy.adapts_batch, errors=errors)
        self.jobs, self.machines, self.policy, self.rules = jobs, machines, policy, rules
        self.clock = FailureClock(rules.failures, machines.n_nodes, rules.seed)
        self.ends: list[tuple[float, int, int]] = []  # a heap of end, job, its start number
        self.n_submitted = 0
        self.finish_s = [math.nan] * len(jobs)
        self.first_s = [math.nan] * len(jobs)
        self.log = _Log()
        self.patience = Patience(policy.name, machines.name, len(jobs))
        self.n_intervals = -1  # how many had begun at the last decision
        self.n_unchanged = 0  # decisions in a row that left all as it was
        self.looks_ahead_after = LOOKS_AHEAD_AFTER  # of those

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
                is_changed = False
                wakes_s = self._wakes_s()
                self._check_that_it_goes_on(wakes_s)
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
        soonest = max(soonest, now)
        number = max(self.n_intervals + 1, math.ceil(soonest / interval - _ROUNDING))
        return max(number * interval, soonest)  # which rounding may have put behind the interval's begin

    def _wakes_s(self) -> float:
        """When the policy wants to be asked again; a cluster in which nothing happens is not looked at in vain."""
        wakes_s = self.policy.wakes_s(self.live)
        interval_s, now_s = self.rules.interval_s, self.live.now_s
        if not self.n_unchanged:
            self.looks_ahead_after = LOOKS_AHEAD_AFTER
        if self.n_unchanged < self.looks_ahead_after or interval_s == 0 or not self.live.placed:
            return wakes_s
        if not isinstance(self.policy, Foresighted):
            return wakes_s
        kept_until_s = self.policy.keeps_until_s(self.live)
        if kept_until_s <= now_s + interval_s:
            self.looks_ahead_after = self.n_unchanged + max(LOOKS_AHEAD_AFTER, self.n_unchanged // _IN_VAIN)
        return max(wakes_s, kept_until_s)

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
        before = self.live.kept_position(job)
        run = self.live.stop(job, kept_until_s=kept_until_s)
        if self.live.kept_position(job) > before:
            self.patience.gets_further()
        else:
            self.patience.stays_in_vain(self.jobs[job].name)
        self.log.spans.append(
            Span(job, run.since_s, min(run.begins_s, self.live.now_s), self.live.now_s, run.placement)
        )

    def _fail_or_repair(self) -> None:
        node, is_up = self.clock.pop()
        if is_up or self.rules.failures is None:
            self.live.set_capacity(node, self.machines.devices[node])
            return
        self.log.n_failures += 1
        self.patience.remembers(self.log.n_failures, self.live.now_s)
        checkpoint_s = self.rules.failures.checkpoint_s
        for job in [job for job, placement in self.live.placed.items() if any(n == node for n, _ in placement)]:
            begins = self.live.begins_s(job)
            n_saved = math.floor(max(self.live.now_s - begins, 0.0) / checkpoint_s)
            self._stop(job, kept_until_s=begins + n_saved * checkpoint_s)
        self.live.set_capacity(node, 0)

    def _decide(self) -> None:
        live, interval = self.live, self.rules.interval_s
        if interval > 0:
            self.n_intervals = max(self.n_intervals + 1, math.floor(live.now_s / interval + _ROUNDING))
        decision = self.policy.decide(live)
        placed, servers = decision.placements, decision.servers
        changed = [job for job, placement in live.placed.items() if placed.get(job) != placement]
        if servers or live.servers:
            changed += [job for job in live.placed if servers.get(job, 0) != live.servers.get(job, 0)]
        for job in dict.fromkeys(changed):
            self._stop(job)
        started = [job for job in placed if job not in live.placed]
        for job in started:
            self._start(job, decision)
        self.patience.moves(len(changed), live.now_s)
        self.n_unchanged = 0 if changed or started else self.n_unchanged + 1
        n_used = sum(live.capacity) - sum(live.free)
        self.log.moments.append(Moment(live.now_s, len(live.active) - len(live.placed), len(live.placed), n_used))

    def _start(self, job: int, decision: Decision) -> None:
        check_start(self.live, job, decision, self.policy.name)
        live, placement = self.live, decision.placements[job]
        end_s = live.start(job, placement, decision.servers.get(job, 0))
        if math.isnan(self.first_s[job]):
            self.first_s[job] = live.now_s
        heapq.heappush(self.ends, (end_s, job, live.n_starts[job]))

    def _check_that_it_goes_on(self, wakes_s: float) -> None:
        """With nothing running and nothing to come, a policy that leaves jobs waiting would never end."""
        live = self.live
        self.patience.remembers(len(self.log.spans) + len(self.log.moments), live.now_s)
        if live.active and not live.placed and self.n_submitted == len(self.jobs):
            job = self.jobs[next(iter(live.active))]
            is_whole = list(self.machines.devices) == live.capacity
            self.patience.idles(
                job.name, is_whole=is_whole, is_for_good=wakes_s == math.inf, n_failures=self.log.n_failures
            )

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
