"""What came out: when each job ran, and what that means for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import Placement
from traincast.scheduling.machines import Machines
from traincast.units import show_duration, show_integer, show_percent, show_things

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job's life."""

    name: str
    kind: str
    submit_s: float
    start_s: float
    finish_s: float
    n_restarts: int
    device_s: float  # devices times seconds that it held, restarts included
    alone_s: float  # what it would take with the devices it asked for and nobody else there

    @property
    def completion_s(self) -> float:
        """From submission to end."""
        return self.finish_s - self.submit_s

    @property
    def wait_s(self) -> float:
        """From submission to the first device."""
        return self.start_s - self.submit_s


class Span(NamedTuple):
    """A job on the same devices; until `begins_s` it restarts."""

    job: int
    since_s: float
    begins_s: float
    until_s: float
    placement: Placement


class Moment(NamedTuple):
    """After a decision."""

    now_s: float
    n_waiting: int
    n_running: int
    n_devices: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule:
    """All jobs under one policy."""

    policy: str
    machines: Machines
    jobs: tuple[JobRecord, ...]
    spans: tuple[Span, ...]
    moments: tuple[Moment, ...]
    n_failures: int = 0

    @cached_property
    def completions_s(self) -> Floats:
        """From submission to end, job by job."""
        return np.array([job.completion_s for job in self.jobs])

    @property
    def mean_completion_s(self) -> float:
        return float(self.completions_s.mean())

    @property
    def median_completion_s(self) -> float:
        return float(np.median(self.completions_s))

    @property
    def p99_completion_s(self) -> float:
        return float(np.percentile(self.completions_s, 99))

    @property
    def mean_wait_s(self) -> float:
        return float(np.mean([job.wait_s for job in self.jobs]))

    @property
    def makespan_s(self) -> float:
        """From the first submission to the last end."""
        return max(job.finish_s for job in self.jobs) - min(job.submit_s for job in self.jobs)

    @property
    def n_restarts(self) -> int:
        return sum(job.n_restarts for job in self.jobs)

    @property
    def utilisation_fraction(self) -> float:
        """Device seconds that jobs held, restarts included, over all there were until the last end."""
        return sum(job.device_s for job in self.jobs) / (self.machines.n_devices * self.makespan_s)

    @property
    def restarting_fraction(self) -> float:
        """Of the device seconds that jobs held: what restarts took."""
        lost = sum((one.begins_s - one.since_s) * sum(n for _, n in one.placement) for one in self.spans)
        return lost / sum(job.device_s for job in self.jobs)

    @property
    def fairness_fraction(self) -> float:
        """Jain's index of the jobs' slowdowns, completion over time alone: 1 where all are equal."""
        slowdowns = self.completions_s / np.array([job.alone_s for job in self.jobs])
        return float(slowdowns.sum() ** 2 / (len(slowdowns) * (slowdowns**2).sum()))

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "policy": self.policy,
            "cluster": self.machines.name,
            **{name: getattr(self, name) for name in SUMMARY},
            "n_failures": self.n_failures,
            "jobs": [
                {
                    "name": job.name,
                    "kind": job.kind,
                    "submit_s": job.submit_s,
                    "start_s": job.start_s,
                    "finish_s": job.finish_s,
                    "completion_s": job.completion_s,
                    "wait_s": job.wait_s,
                    "alone_s": job.alone_s,
                    "n_restarts": job.n_restarts,
                    "device_s": job.device_s,
                }
                for job in self.jobs
            ],
            "spans": [
                {**span._asdict(), "job": self.jobs[span.job].name, "placement": [list(one) for one in span.placement]}
                for span in self.spans
            ],
            "moments": [moment._asdict() for moment in self.moments],
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        rows = [(title, show(getattr(self, name))) for name, (title, show) in _SHOWN.items()]
        slowest = max(self.jobs, key=lambda job: job.completion_s)
        notes = [f"Slowest: {slowest.name}, {show_duration(slowest.completion_s)} from submission to end."]
        notes += [f"{show_things(self.n_failures, 'failure')} of nodes."] if self.n_failures else []
        jobs = show_things(len(self.jobs), "job")
        return to_notebook(f"{jobs} on {self.machines.name} under {self.policy}", rows, notes=notes)


_SHOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "mean_completion_s": ("mean completion", show_duration),
    "median_completion_s": ("median", show_duration),
    "p99_completion_s": ("p99", show_duration),
    "makespan_s": ("makespan", show_duration),
    "mean_wait_s": ("wait", show_duration),
    "utilisation_fraction": ("in use", show_percent),
    "restarting_fraction": ("restarting", show_percent),
    "fairness_fraction": ("fairness", show_percent),
    "n_restarts": ("restarts", show_integer),
}
SUMMARY = tuple(_SHOWN)
