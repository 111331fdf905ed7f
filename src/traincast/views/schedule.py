"""What `traincast schedule` shows: a line for each event, and in the end predicted beside actual completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_duration, show_things

if TYPE_CHECKING:
    from traincast.api.elastic import ElasticRun
    from traincast.launch.elastic_events import Event
    from traincast.launch.elastic_history import JobOutcome

_COLUMNS = columns_of(
    "job as name, submit_s: submitted, start_s: started, devices as name, n_lost: deaths, "
    "planned_finish_s: end in the simulation, expected_finish_s: expected at last start, finish_s: end, "
    "completion_s: completion"
)


_MOST_NAMED = 14  # jobs that have colours of their own


def document_of(run: ElasticRun) -> Document:
    """One row per job; times count from the first start of the scheduler."""
    jobs = run.jobs
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
        title=f"{show_things(len(jobs), 'job')} under {run.policy}",
        subtitle=f"a decision every {show_duration(run.interval_s)}, on CPUs of a Ray cluster",
        tables=(Table(title="Predicted beside actual", columns=_COLUMNS, rows=rows),),
        charts=(_completion_chart(jobs), _devices_chart(jobs)),
        notes=(
            f"Assumed: a start takes {show_duration(run.restart_s)}; steps take what is forecast for this machine, "
            "until the first ones are measured.",
            *(f"{job.name} was given up: {job.error}" for job in jobs if job.error),
        ),
    )


def _completion_chart(jobs: Sequence[JobOutcome]) -> Chart:
    """From submission to end: as simulated before anything ran, as expected at the last start, and as it was."""
    names = [job.name for job in jobs]
    ends: dict[str, list[float | None]] = {
        "simulated": [job.planned_finish_s for job in jobs],
        "expected at last start": [job.expected_finish_s for job in jobs],
        "measured": [job.finish_s for job in jobs],
    }
    return Chart(
        title="Completion: predicted and measured",
        kind="bar",
        series=tuple(
            Series(
                name=name,
                x=names,
                y=[None if end is None else end - job.submit_s for end, job in zip(found, jobs, strict=True)],
            )
            for name, found in ends.items()
        ),
        x_label="job",
        y_label="from submission to end",
        y_show="duration",
    )


def _devices_chart(jobs: Sequence[JobOutcome]) -> Chart:
    """Who had how many devices when; beyond a number of jobs only how many were in use."""
    times = sorted({moment for job in jobs for stay in job.stays for moment in (stay.since_s, stay.until_s)})
    shown = [(job.name, [job]) for job in jobs] if len(jobs) <= _MOST_NAMED else [("all jobs", list(jobs))]
    return Chart(
        title="Devices of the jobs",
        kind="stacked_steps",
        series=tuple(
            Series(name=name, x=times, y=[sum(_devices_at(job, now_s) for job in own) for now_s in times])
            for name, own in shown
        ),
        x_label="time",
        y_label="devices",
        x_show="duration",
        y_show="integer",
    )


def _devices_at(job: JobOutcome, now_s: float) -> int:
    return sum(stay.n_devices for stay in job.stays if stay.since_s <= now_s < stay.until_s)


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
