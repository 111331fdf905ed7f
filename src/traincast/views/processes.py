"""What `traincast measure --processes` shows."""

from __future__ import annotations

from dataclasses import replace

from traincast.api.measuring_together import TogetherMeasurement
from traincast.forecasting.forecast import Forecast
from traincast.measurement.processes.link_result import AllReduceMeasurement
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.records.environment import Environment
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_bytes, show_bytes_per_s, show_duration, show_percent
from traincast.views.measure import forecast_notes

_WAYS = {
    "step": "step, gradients reduced",
    "exposed": "  communication that shows",
    "compute": "  the same without reducing",
    "crowded": "bare model, all processes at once",
    "alone": "bare model, one process alone",
    "all_reduce": "gradients reduced, nothing else",
}


def document_of(answer: TogetherMeasurement) -> Document:
    """The steps beside their forecast, the link, or both."""
    if answer.steps is not None:
        document = steps_document(answer.steps, answer.forecast, answer.no_forecast)
        return document if answer.link is None else with_link(document, answer.link)
    assert answer.link is not None
    return link_document(answer.link)


def steps_document(steps: ProcessesMeasurement, forecast: Forecast | None, no_forecast: str = "") -> Document:
    """The step beside the same passes with less between the processes, and beside its forecast where there is one."""
    rows = []
    for name, title in _WAYS.items():
        summary = getattr(steps, name)
        rows.append((title, summary.median, summary.p10, summary.p90, summary.n))
    if forecast is not None:
        communication = forecast.interval("exposed_communication_s")
        rows.append(("forecast of the step", forecast.step_s, *forecast.interval("step_s"), None))
        rows.append(("  of communication", forecast.exposed_communication_s, *communication, None))
    columns = columns_of("what:, median_s: median, p10_s: p10, p90_s: p90, n as integer")
    share = steps.batch_size // steps.n_processes
    return Document(
        title=f"{steps.model} in {steps.n_processes} processes, batch {steps.batch_size:,}",
        subtitle=f"{steps.precision}, {steps.optimizer}, {steps.device} with {steps.backend}, {share:,} samples each, "
        f"{_threads(steps.n_threads)} each; {_where(steps.environment)}",
        tables=(Table(title="Steps", columns=columns, rows=tuple(rows)),),
        charts=(_ways_chart(steps),),
        notes=(
            *_sentences(steps),
            *forecast_notes(steps.step_s, forecast, no_forecast),
            *(f"Warning: {warning}" for warning in steps.warnings),
        ),
    )


def _sentences(steps: ProcessesMeasurement) -> tuple[str, ...]:
    n_buckets = len(steps.bucket_bytes)
    buckets = "1 bucket" if n_buckets == 1 else f"{n_buckets} buckets"
    return (
        f"{steps.samples_per_s:,.1f} samples/s; {show_percent(steps.scaling_efficiency_fraction)} of "
        f"{steps.n_processes} times one process alone.",
        f"Gradients have {show_bytes(steps.gradient_bytes)} in {buckets}; reduced alone they pass at "
        f"{show_bytes_per_s(steps.bus_bytes_per_s)}, {show_percent(steps.bandwidth_utilisation_fraction)} of what one "
        f"large message reaches.",
    )


def _ways_chart(steps: ProcessesMeasurement) -> Chart:
    names = ("alone", "crowded", "compute", "step")
    return Chart(
        title=f"{steps.model}: a step with ever more between the processes",
        kind="bar",
        series=(Series(name="median", x=list(names), y=[getattr(steps, name).median for name in names]),),
        x_label="",
        y_label="time",
        y_show="duration",
    )


def link_document(link: AllReduceMeasurement) -> Document:
    """Seconds and bandwidth by size, and the latency and bandwidth behind them."""
    columns = columns_of(
        "n_bytes: message as bytes, median_s: median, p10_s: p10, p90_s: p90, fitted_s: fitted, "
        "bytes_per_s: algorithm, bus_bytes_per_s: bus"
    )
    rows = tuple(
        (
            row.n_bytes,
            row.seconds.median,
            row.seconds.p10,
            row.seconds.p90,
            link.link.all_reduce_s(row.n_bytes),
            row.bytes_per_s,
            row.bus_bytes_per_s,
        )
        for row in link.rows
    )
    latency, rate = link.link.latency_s, link.link.bytes_per_s
    return Document(
        title=f"All-reduce between {link.n_processes} processes",
        subtitle=f"{link.backend}, {_threads(link.environment.n_threads)} each; {_where(link.environment)}",
        tables=(Table(title="All-reduce", columns=columns, rows=rows),),
        charts=(_bandwidth_chart(link),),
        notes=(
            *(("Warning: It was stopped before all rounds were made.",) if link.is_partial else ()),
            f"Fitted: a latency of {show_duration(latency.median)} (p10 to p90: {show_duration(latency.p10)} to "
            f"{show_duration(latency.p90)}) and {show_bytes_per_s(rate.median)} ({show_bytes_per_s(rate.p10)} to "
            f"{show_bytes_per_s(rate.p90)}) a direction.",
            "Algorithm: bytes of the vector over the time. Bus: bytes that a process must send over the time.",
        ),
    )


def with_link(steps: Document, link: AllReduceMeasurement) -> Document:
    """The steps, and below them the link."""
    below = link_document(link)
    return replace(
        steps,
        tables=(*steps.tables, *below.tables),
        charts=(*steps.charts, *below.charts),
        notes=(*steps.notes, *below.notes),
    )


def _bandwidth_chart(link: AllReduceMeasurement) -> Chart:
    sizes = [row.n_bytes for row in link.rows]
    fitted = [row.bus_bytes_per_s * row.seconds.median / link.link.all_reduce_s(row.n_bytes) for row in link.rows]
    return Chart(
        title=f"All-reduce between {link.n_processes} processes",
        kind="line",
        series=(
            Series(name="measured", x=sizes, y=[row.bus_bytes_per_s for row in link.rows]),
            Series(name="fitted", x=sizes, y=fitted),
        ),
        x_label="message",
        y_label="bus bandwidth",
        x_show="bytes",
        y_show="bytes_per_s",
        log_x=True,
        log_y=True,
    )


def _threads(n: int) -> str:
    return "1 thread" if n == 1 else f"{n} threads"


def _where(environment: Environment) -> str:
    return f"{environment.device}, {environment.n_cores} cores, torch {environment.versions['torch']}"
