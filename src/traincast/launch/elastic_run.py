"""A schedule of real jobs in a folder: begun, or gone on with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from traincast.errors import InputError
from traincast.launch.elastic_crew import KIND, RayCluster
from traincast.launch.elastic_events import EventLog
from traincast.launch.elastic_history import JobOutcome, outcome_of
from traincast.launch.elastic_job import ElasticJob
from traincast.launch.elastic_scheduler import OnEvent, Scheduler
from traincast.launch.ray_campaign import LOCAL, ray_cluster
from traincast.recipes.kept_settings import check_settings, keep_settings
from traincast.records.environment import read_environment
from traincast.records.store import Store
from traincast.scheduling.checks import check_jobs
from traincast.scheduling.decision import Policy
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines, find_machines
from traincast.scheduling.policies.online_optimus import NAME as ONLINE
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.speeds import Speeds
from traincast.scheduling.values import is_number, is_whole, told

STORE, _SETTINGS, _LOCK = "schedule.db", "schedule.json", ".scheduler"


def run_schedule(  # noqa: PLR0913  (what to run, where, how, and who is told)
    jobs: Sequence[ElasticJob],
    forecasts: Sequence[Job],
    folder: Path,
    *,
    policy: str,
    interval_s: float,
    on_ray: str = LOCAL,
    n_cpus: int | None = None,
    on_event: OnEvent | None = None,
) -> list[JobOutcome]:
    """Run all jobs; the same call in the same folder goes on where a scheduler was killed.

    On several machines the folder must be one that all of them see. `n_cpus` are those of a local cluster.
    """
    if not (is_number(interval_s) and interval_s > 0):
        raise InputError(f"The interval between decisions should be above 0 s, not {told(interval_s)}.")
    if n_cpus is not None and (on_ray != LOCAL or not is_whole(n_cpus) or n_cpus < 1):
        raise InputError(f"CPUs ({n_cpus!r}) are at least one, and only of a local cluster: others have their own.")
    chosen = make_policy(policy)
    order = sorted(range(len(jobs)), key=lambda number: jobs[number].submit_s)
    ordered = [jobs[number] for number in order]
    settings = {"policy": chosen.name, "interval_s": interval_s, "jobs": [asdict(job) for job in ordered]}
    expected = [forecasts[number] for number in order]
    check_settings(folder / _SETTINGS, settings)
    if n_cpus is not None:
        _check(expected, find_machines(f"1x{n_cpus}x{KIND}"), chosen)
    with ray_cluster(on_ray, n_cpus=n_cpus) as ray:
        cluster = RayCluster(ray)
        _check(expected, cluster.machines, chosen)
        keep_settings(folder / _SETTINGS, settings)  # a folder that nothing can run in would refuse what is put right
        with _alone(folder), Store(folder / STORE) as store:
            log = EventLog(store, read_environment())  # its clock starts with the cluster there
            Scheduler(cluster, ordered, expected, folder, log).run(chosen, interval_s=interval_s, on_event=on_event)
            return [outcome_of(log, job.name, job.submit_s) for job in ordered]


def _check(jobs: Sequence[Job], machines: Machines, policy: Policy) -> None:
    """What the first decision would stumble over."""
    check_jobs(jobs, machines, Speeds(machines), adapts_batch=policy.adapts_batch)
    if policy.name == ONLINE:
        raise InputError(
            f"'{ONLINE}' needs trainings with parameter servers, which real ones do not have: use 'optimus'."
        )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One scheduler at a time. The system lets go of the lock when a process ends, however it ends."""
    with (folder / _LOCK).open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # a system without it: then nobody is kept out
            pass
        except OSError:
            raise InputError(f"Another scheduler works in '{folder}': wait for it, or use another.") from None
        yield
