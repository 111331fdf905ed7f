"""Real elastic jobs on a Ray cluster, under a policy that is fed with our forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.runnables import require_torch
from traincast.errors import UnknownModelError
from traincast.options import cluster as o
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.launch.elastic_events import Event
    from traincast.launch.elastic_history import JobOutcome
    from traincast.launch.elastic_job import ElasticJob
    from traincast.scheduling.job import Job

RESTART_S = 5.0  # save, end the processes, start new ones, import torch, load


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticRun:
    """What became of every job, and under which rules."""

    jobs: tuple[JobOutcome, ...]
    policy: str
    interval_s: float
    restart_s: float

    @property
    def has_failed(self) -> bool:
        """Whether a job was given up."""
        return any(job.error for job in self.jobs)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {"policy": self.policy, "jobs": [job.to_dict() for job in self.jobs]}


@question
def schedule(
    jobs: o.ElasticJobs,
    folder: o.RunsFolder,
    *,
    policy: o.ElasticPolicy = "optimus",
    interval_s: o.DecisionIntervalS = 10.0,
    restart_s: o.StartS = RESTART_S,
    on_ray: o.RayCluster = "local",
    n_cpus: o.LocalCpus = None,
    on_event: Callable[[Event], None] | None = None,
) -> ElasticRun:
    """Train all jobs (or those of a CSV file) for real; a worker is one CPU. See `run_schedule`."""
    require_torch("Training", extra="ray")
    from traincast.launch.elastic_job import ElasticJob, read_elastic_jobs
    from traincast.launch.elastic_run import run_schedule
    from traincast.scheduling.values import jobs_in

    found = read_elastic_jobs(jobs) if isinstance(jobs, str | Path) else jobs_in(jobs, ElasticJob)
    outcomes = run_schedule(
        found,
        [forecast_of(job, restart_s=restart_s) for job in found],
        Path(folder),
        policy=policy,
        interval_s=interval_s,
        on_ray=on_ray,
        n_cpus=n_cpus,
        on_event=on_event,
    )
    return ElasticRun(jobs=tuple(outcomes), policy=policy, interval_s=interval_s, restart_s=restart_s)


def forecast_of(job: ElasticJob, *, restart_s: float = RESTART_S) -> Job:
    """The job as policies know it: the seconds of the whole run with 1, 2, ... workers that divide its batch.

    What the forecast is off by on these CPUs, and what gradients take on their way, is learned from the first steps.
    """
    from traincast.api.forecasts import forecast
    from traincast.api.models import load_model
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.models import meta_model
    from traincast.scheduling.job import Job
    from traincast.scheduling.profile import CountProfile

    data = load_dataset("digits").train
    try:
        meta_model(job.model, data.n_classes)
    except UnknownModelError as error:  # what no recipe trains
        raise UnknownModelError(f"Job '{job.name}': {error}") from None
    trace = load_model(job.model, n_classes=data.n_classes, image_size=data.image_side)
    n_steps = -(-data.n_samples // job.batch_size) * job.n_epochs
    seconds = []
    for n_workers in range(1, job.max_devices + 1):
        share = -(-job.batch_size // n_workers)
        seconds.append(forecast(trace, on="this-machine", batch_size=share).step_s * n_steps)
    profile = CountProfile(name=job.model, seconds={"CPU": tuple(seconds)})
    return Job(name=job.name, submit_s=job.submit_s, profile=profile, n_devices=job.n_devices, restart_s=restart_s)
