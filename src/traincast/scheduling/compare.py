"""Several policies on the same jobs, side by side, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.scheduling.decision import Policy
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines
from traincast.scheduling.schedule import SUMMARY, Schedule
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds
from traincast.scheduling.values import is_whole


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Outcome:
    """One policy: the schedule of the first seed, and each number of all seeds."""

    policy: str
    schedule: Schedule
    by_seed: dict[str, tuple[float, ...]]

    def mean(self, name: str) -> float:
        """Over the seeds."""
        return float(np.mean(self.by_seed[name]))

    def interval(self, name: str) -> tuple[float, float]:
        """p10 and p90 over the seeds; both are the value where there is one seed."""
        low, high = np.percentile(self.by_seed[name], (10, 90))
        return float(low), float(high)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PolicyComparison:
    """All policies on the same jobs and seeds."""

    jobs: tuple[Job, ...]
    outcomes: tuple[Outcome, ...]
    n_seeds: int
    rules: Rules

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "n_seeds": self.n_seeds,
            "rules": asdict(self.rules),
            "policies": [
                {
                    **one.schedule.to_dict(),
                    "over_seeds": {
                        name: {"mean": one.mean(name), "p10": one.interval(name)[0], "p90": one.interval(name)[1]}
                        for name in SUMMARY
                    },
                }
                for one in self.outcomes
            ],
        }


def compare(
    jobs: Sequence[Job],
    machines: Machines,
    policies: Sequence[Policy],
    rules: Rules,
    *,
    n_seeds: int = 1,
) -> PolicyComparison:
    """Each policy with each seed, counted on from the one of the rules. Speeds are worked out once for all of them."""
    if not is_whole(n_seeds) or n_seeds < 1:
        raise InputError(f"The number of seeds should be a whole number from 1, not {n_seeds!r}.")
    if n_seeds > 1 and not _is_random(jobs, policies, rules):
        raise InputError(
            f"{n_seeds} seeds would give the same result {n_seeds} times: without failures and forecast errors "
            "nothing is random."
        )
    speeds = Speeds(machines)
    outcomes = []
    for policy in policies:
        schedules = [
            simulate_policy(jobs, machines, policy, replace(rules, seed=rules.seed + number), speeds=speeds)
            for number in range(n_seeds)
        ]
        by_seed = {name: tuple(float(getattr(one, name)) for one in schedules) for name in SUMMARY}
        outcomes.append(Outcome(policy=schedules[0].policy, schedule=schedules[0], by_seed=by_seed))
    return PolicyComparison(jobs=tuple(jobs), outcomes=tuple(outcomes), n_seeds=n_seeds, rules=rules)


def _is_random(jobs: Sequence[Job], policies: Sequence[Policy], rules: Rules) -> bool:
    is_run_random = rules.failures is not None or rules.work_sigma > 0 or rules.speed_sigma > 0
    return is_run_random or any(policy.is_random for policy in policies) or any(job.work_sigma for job in jobs)
