"""A schedule of real jobs in a folder: begun, or gone on with."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from traincast.errors import InputError
from traincast.launch.elastic_events import EventLog
from traincast.launch.elastic_history import JobOutcome, outcome_of
from traincast.launch.elastic_job import ElasticJob
from traincast.launch.elastic_scheduler import OnEvent, Scheduler
from traincast.launch.ray_campaign import LOCAL, ray_cluster
from traincast.measurement.environment import read_environment
from traincast.measurement.store import Store
from traincast.recipes.kept_settings import keep_settings
from traincast.scheduling.job import Job
from traincast.scheduling.policies.registry import make_policy

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
    if not (math.isfinite(interval_s) and interval_s > 0):
        raise InputError(f"The interval between decisions should be above 0 s, not {interval_s:g}.")
    if n_cpus is not None and (on_ray != LOCAL or n_cpus < 1):
        raise InputError(f"CPUs ({n_cpus}) are at least one, and only of a local cluster: others have their own.")
    chosen = make_policy(policy)
    order = sorted(range(len(jobs)), key=lambda number: jobs[number].submit_s)
    ordered = [jobs[number] for number in order]
    settings = {"policy": chosen.name, "interval_s": interval_s, "jobs": [asdict(job) for job in ordered]}
    keep_settings(folder / _SETTINGS, settings)
    with _alone(folder), Store(folder / STORE) as store:
        with ray_cluster(on_ray, n_cpus=n_cpus) as ray:
            log = EventLog(store, read_environment())  # its clock starts with the cluster there
            scheduler = Scheduler(ray, ordered, [forecasts[number] for number in order], folder, log)
            scheduler.run(chosen, interval_s=interval_s, on_event=on_event)
        return [outcome_of(log.events, job.name, job.submit_s) for job in ordered]


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
