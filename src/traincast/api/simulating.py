"""Many jobs on one cluster: what each policy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.scheduling.compare import Comparison
    from traincast.scheduling.decision import Policy
    from traincast.scheduling.job import Job
    from traincast.scheduling.jobs_file import Forecaster
    from traincast.scheduling.machines import Machines
    from traincast.scheduling.profile import CountProfile
    from traincast.scheduling.schedule import Schedule
    from traincast.scheduling.simulator import Rules

INTERVAL_S = 60.0
REPAIR_S = 1800.0
CHECKPOINT_S = 600.0


def simulate(
    jobs: Sequence[Job] | str | Path,
    cluster: Machines | str,
    *,
    policy: str | Policy = "optimus",
    tables: str | Path | None = None,
    workload: str | None = None,
    interval_s: float = INTERVAL_S,
    restart_s: float | None = None,
    work_error: float = 0.0,
    speed_error: float = 0.0,
    failure_s: float | None = None,
    repair_s: float = REPAIR_S,
    checkpoint_s: float = CHECKPOINT_S,
    seed: int = 0,
) -> Schedule:
    """When would each job end? `mean_completion_s`, `makespan_s`, `jobs` and more of the schedule say.

    `jobs` are Job objects or a CSV file: plain seconds, trainings with the measured `tables` of their applications (a
    folder), trainings whose speed is forecast (a column `model`), or a trace; `workload` chooses among several in a
    file. `cluster` is "16x4xT4" (nodes x devices x type), with + between types. Policies are "fifo", "srtf", "drf",
    "tiresias", "optimus", "optimus-online", "gavel", "pollux", "traincast", "traincast-batch", or an object of yours.

    The policy is asked every `interval_s` seconds (0: at each event); a job whose devices change pauses for its
    `restart_s` (None: 30 s, or its own). Errors are standard deviations of the logarithm: `work_error` of how much
    remains, `speed_error` of the speed at each number of devices. With `failure_s` each node fails that often on
    average, is back after `repair_s`, and its jobs go back to their last checkpoint, one each `checkpoint_s`.
    """
    from traincast.scheduling.policies.registry import make_policy
    from traincast.scheduling.simulator import simulate_policy

    machines = _machines(cluster)
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    rules = _rules(interval_s, work_error, speed_error, failure_s, repair_s, checkpoint_s, seed)
    return simulate_policy(_jobs(jobs, machines, tables, workload, restart_s), machines, chosen, rules)


def simulate_many(
    jobs: Sequence[Job] | str | Path,
    cluster: Machines | str,
    policies: Sequence[str],
    *,
    tables: str | Path | None = None,
    workload: str | None = None,
    interval_s: float = INTERVAL_S,
    restart_s: float | None = None,
    work_error: float = 0.0,
    speed_error: float = 0.0,
    failure_s: float | None = None,
    repair_s: float = REPAIR_S,
    checkpoint_s: float = CHECKPOINT_S,
    seed: int = 0,
    n_seeds: int = 1,
) -> Comparison:
    """Several policies on the same jobs, over `n_seeds` seeds; options are those of `simulate`."""
    from traincast.scheduling.compare import compare
    from traincast.scheduling.policies.registry import POLICIES, make_policy

    if not policies:
        raise InputError("A comparison needs at least one policy.")
    for name in policies:
        make_policy(name)  # so that a wrong name is told before anything runs
    machines = _machines(cluster)
    rules = _rules(interval_s, work_error, speed_error, failure_s, repair_s, checkpoint_s, seed)
    makers = [POLICIES[name.strip().lower()] for name in policies]
    return compare(_jobs(jobs, machines, tables, workload, restart_s), machines, makers, rules, n_seeds=n_seeds)


def _machines(cluster: Machines | str) -> Machines:
    from traincast.scheduling.machines import find_machines

    return find_machines(cluster) if isinstance(cluster, str) else cluster


def _rules(
    interval_s: float,
    work_error: float,
    speed_error: float,
    failure_s: float | None,
    repair_s: float,
    checkpoint_s: float,
    seed: int,
) -> Rules:
    from traincast.scheduling.failures import Failures
    from traincast.scheduling.simulator import Rules

    failures = None
    if failure_s is not None:
        failures = Failures(mean_between_s=failure_s, repair_s=repair_s, checkpoint_s=checkpoint_s, seed=seed)
    return Rules(interval_s=interval_s, failures=failures, work_sigma=work_error, speed_sigma=speed_error, seed=seed)


def _jobs(
    jobs: Sequence[Job] | str | Path,
    machines: Machines,
    tables: str | Path | None,
    workload: str | None,
    restart_s: float | None,
) -> Sequence[Job]:
    from dataclasses import replace

    from traincast.scheduling.jobs_file import read_jobs
    from traincast.scheduling.pollux_tables import read_applications

    if isinstance(jobs, str | Path):
        applications = None if tables is None else read_applications(Path(tables), machines.types[0])
        found = read_jobs(jobs, applications=applications, workload=workload, forecast=_forecaster(machines))
    else:
        found = list(jobs)
    return found if restart_s is None else [replace(job, restart_s=restart_s) for job in found]


def _forecaster(machines: Machines) -> Forecaster:
    """Profiles of trainings on these machines, each worked out once. Where a batch does not fit, its passes halve."""
    known: dict[tuple[str, int, int, int], CountProfile] = {}

    def forecast(model: str, batch_size: int, n_samples: int, n_epochs: int) -> CountProfile:
        from traincast.scheduling.profile import CountProfile

        key = (model, batch_size, n_samples, n_epochs)
        if key not in known:
            seconds = {
                kind: _seconds(model, group, machines.n_devices_of(kind), key[1:]) for kind, group in _groups(machines)
            }
            known[key] = CountProfile(name=model, seconds=seconds)
        return known[key]

    return forecast


def _groups(machines: Machines) -> list[tuple[str, str]]:
    """The words for each type of device; a type that comes twice stands for all its nodes."""
    return list({kind: part.strip() for part, kind in _parts(machines)}.items())


def _parts(machines: Machines) -> list[tuple[str, str]]:
    from traincast.scheduling.machines import find_machines

    return [(part, find_machines(part).types[0]) for part in machines.name.split("+")]


def _seconds(model: str, group: str, n_devices: int, run: tuple[int, int, int]) -> tuple[float, ...]:
    """Of the whole run on 1, 2, ... devices."""
    from traincast.api.forecasts import forecast_many
    from traincast.api.models import load_model
    from traincast.hardware.cluster_text import find_cluster

    batch_size, n_samples, n_epochs = run
    cluster, trace = find_cluster(group), load_model(model)
    places = [cluster.take(n) for n in range(1, min(n_devices, batch_size) + 1)]
    seconds: list[float | None] = [None] * len(places)
    n_passes = 1
    while None in seconds:
        left = [n for n, known in enumerate(seconds) if known is None and (n + 1) * n_passes <= batch_size]
        if not left:
            raise InputError(f"'{model}' does not fit on '{group}', whatever the passes that share its batch.")
        asked = [places[n] for n in left]
        options = {"n_samples": n_samples, "n_epochs": n_epochs, "accumulation_steps": n_passes}
        for n, answer in zip(left, forecast_many(trace, asked, [batch_size], **options).forecasts(), strict=True):
            if answer.fits:
                seconds[n] = answer.total_s
        n_passes *= 2
    return tuple(float(one) for one in seconds if one is not None)
