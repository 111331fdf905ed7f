"""Many jobs on one cluster: what each policy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from traincast.errors import InputError
from traincast.options import cluster as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.scheduling.compare import PolicyComparison
    from traincast.scheduling.decision import Policy
    from traincast.scheduling.failures import Failures
    from traincast.scheduling.job import Job
    from traincast.scheduling.machines import Machines
    from traincast.scheduling.schedule import Schedule


@question
def simulate(
    jobs: o.Jobs, cluster: o.JobsCluster, *, policy: o.OnePolicy = "optimus", **options: Unpack[o.SimulateOptions]
) -> Schedule:
    """When would each job end? `mean_completion_s`, `makespan_s`, `jobs` and more of the schedule say.

    `jobs` are Job objects or a CSV file: plain seconds, trainings with the measured `tables` of their applications (a
    folder), trainings whose speed is forecast (a column `model`), trainings with parameter servers (columns `theta` and
    `loss`), or a trace; `workload` chooses among several in a file. `cluster` is "16x4xT4" (nodes x devices x type),
    with + between types. Policies are "fifo", "srtf", "drf", "tiresias", "optimus", "optimus-online" (parameter servers
    only), "gavel", "pollux", "traincast", "traincast-batch", or an object of yours.

    The policy is asked every `interval_s` seconds (0: at each event); a job whose devices change pauses for its
    `restart_s` (None: 30 s, or its own). Errors are standard deviations of the logarithm: `work_error` of how much
    remains, `speed_error` of the speed at each number of devices. With `failure_s` each node fails that often on
    average, is back after `repair_s` (1800), and its jobs go back to their last checkpoint, one each `checkpoint_s`
    (600).
    """
    return simulate_many(jobs, cluster, [policy], **options).outcomes[0].schedule


@question
def simulate_many(
    jobs: o.Jobs,
    cluster: o.JobsCluster,
    policies: o.Policies,
    *,
    n_seeds: o.NSeeds = 1,
    **options: Unpack[o.SimulateOptions],
) -> PolicyComparison:
    """Several policies on the same jobs, over `n_seeds` seeds; options are those of `simulate`."""
    from traincast.scheduling.compare import compare
    from traincast.scheduling.machines import find_machines
    from traincast.scheduling.policies.registry import make_policy
    from traincast.scheduling.simulator import Rules

    if not policies:
        raise InputError("A comparison needs at least one policy.")
    chosen = [make_policy(one) if isinstance(one, str) else _policy(one) for one in policies]
    machines = find_machines(cluster) if isinstance(cluster, str) else cluster
    rules = Rules(
        interval_s=options["interval_s"],
        failures=_failures(options["failure_s"], options["repair_s"], options["checkpoint_s"]),
        work_sigma=options["work_error"],
        speed_sigma=options["speed_error"],
        seed=options["seed"],
    )
    found = _jobs(jobs, machines, options["tables"], options["workload"], options["restart_s"])
    return compare(found, machines, chosen, rules, n_seeds=n_seeds)


def _policy(given: object) -> Policy:
    if not all(hasattr(given, name) for name in ("name", "adapts_batch", "is_random", "fresh", "decide", "wakes_s")):
        raise InputError(
            "A policy should be a name such as 'optimus' or an object with the methods of a policy; "
            f"{given!r:.80} lacks some of them."
        )
    return cast("Policy", given)


def _failures(failure_s: float | None, repair_s: float | None, checkpoint_s: float | None) -> Failures | None:
    from traincast.scheduling.failures import Failures

    given = {"repair_s": repair_s, "checkpoint_s": checkpoint_s}
    options = {name: value for name, value in given.items() if value is not None}
    if failure_s is not None:
        return Failures(mean_between_s=failure_s, **options)
    if options:
        raise InputError(
            "How long a repair takes and how often jobs are saved matter only if nodes fail: also give the mean time "
            "between failures."
        )
    return None


def _jobs(
    jobs: Sequence[Job] | str | Path,
    machines: Machines,
    tables: str | Path | None,
    workload: str | None,
    restart_s: float | None,
) -> Sequence[Job]:
    from dataclasses import replace

    from traincast.api.forecast_jobs import forecaster
    from traincast.scheduling.job import Job
    from traincast.scheduling.jobs_file import read_jobs
    from traincast.scheduling.pollux_tables import KIND, read_applications
    from traincast.scheduling.values import jobs_in

    if isinstance(jobs, str | Path):
        spelled = next((kind for kind in machines.types if kind.casefold() == KIND.casefold()), KIND)
        applications = None if tables is None else read_applications(Path(tables), spelled)
        found = read_jobs(jobs, applications=applications, workload=workload, forecast=forecaster(machines))
    elif tables is not None or workload is not None:
        raise InputError("Tables and a workload apply to a file of jobs, not to Job objects.")
    else:
        found = jobs_in(jobs, Job)
    return found if restart_s is None else [replace(job, restart_s=restart_s) for job in found]
