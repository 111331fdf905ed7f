"""What `traincast schedule` shows: a line for each event, and in the end predicted beside actual completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_duration

if TYPE_CHECKING:
    from traincast.launch.elastic_events import Event
    from traincast.launch.elastic_history import JobOutcome

_COLUMNS = (
    Column(key="job", header="job", show="name"),
    Column(key="submit_s", header="submitted", show="duration"),
    Column(key="start_s", header="started", show="duration"),
    Column(key="devices", header="devices", show="name"),
    Column(key="n_lost", header="deaths", show="integer"),
    Column(key="planned_finish_s", header="end in the simulation", show="duration"),
    Column(key="expected_finish_s", header="expected at last start", show="duration"),
    Column(key="finish_s", header="end", show="duration"),
    Column(key="completion_s", header="completion", show="duration"),
)


def document_of(jobs: Sequence[JobOutcome], *, policy: str) -> Document:
    """One row a job; moments count from the first start of the scheduler."""
    rows = tuple(
        (
            job.name,
            job.submit_s,
            job.start_s,
            " > ".join(str(n) for n in job.devices),
            job.n_lost,
            job.planned_finish_s,
            job.expected_finish_s,
            job.finish_s,
            job.completion_s,
        )
        for job in jobs
    )
    return Document(
        title=f"{len(jobs):,} jobs under {policy}",
        tables=(Table(title="Predicted beside actual", columns=_COLUMNS, rows=rows),),
        notes=tuple(f"{job.name} was given up: {job.error}" for job in jobs if job.error),
    )


def line_of(event: Event) -> str:
    """An event in words."""
    values = event.values
    if event.what == "decide":
        said = "decided: " + (", ".join(f"{job} {n}" for job, n in values["devices"].items()) or "nobody runs")
    elif event.what == "start":
        expected = show_duration(values["expected_finish_s"])
        said = f"{event.job} starts on {values['n_devices']}, expected to end at {expected}"
    elif event.what == "end":
        said = f"{event.job} {values['how']} at step {values['step']:,}. {values['why']}".rstrip()
    else:
        said = f"{values['policy']} begins" if "planned_finish_s" in values else f"{values['policy']} goes on"
    return f"{event.now_s:8.1f} s  {said}"
