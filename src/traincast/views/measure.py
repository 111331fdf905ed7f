"""What `traincast measure` shows: a step or an epoch by phase, beside what was forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincast.records.identity import STEP
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_duration, show_percent, show_ratio, show_things

if TYPE_CHECKING:
    from traincast.api.model_measuring import ModelMeasurement
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement
    from traincast.measurement.statistics import Summary
    from traincast.records.environment import Environment

_MEASURED = columns_of("what:, median_s: median, minimum_s: least, p10_s: p10, p90_s: p90, share_fraction: share")
_FORECAST = columns_of("forecast_s: forecast, forecast_over_measured: forecast / measured as ratio")


def document_of(answer: ModelMeasurement) -> Document:
    """A step or an epoch, beside its forecast."""
    measured = answer.measured
    show: Any = step_document if answer.kind == STEP else epoch_document
    document: Document = show(measured, answer.forecast, answer.no_forecast)
    return document


def step_document(measured: Measurement, forecast: Forecast | None, no_forecast: str = "") -> Document:
    """A step by phase, with the forecast of the same step where there is one."""
    rows = [_row("step", measured.step, 1.0, _forecast_s(forecast, "step_s"))]
    total_s = sum(summary.median for summary in measured.phases.values())
    for phase, summary in measured.phases.items():
        share = summary.median / total_s if total_s else 0.0
        rows.append(_row(f"  {phase}", summary, share, _forecast_s(forecast, f"{phase}_s")))
    columns = (*_MEASURED, *_FORECAST) if forecast else _MEASURED
    return Document(
        title=f"{measured.model} on {measured.environment.device}, batch {measured.batch_size:,}",
        subtitle=_settings(measured),
        tables=(Table(title="Measured", columns=columns, rows=tuple(tuple(row[: len(columns)]) for row in rows)),),
        charts=(_phases_chart(measured, forecast),),
        notes=(
            *_speed(measured),
            *forecast_notes(measured.step_s, forecast, no_forecast),
            *_warnings(measured.warnings),
        ),
    )


def epoch_document(measured: EpochMeasurement, forecast: Forecast | None = None, no_forecast: str = "") -> Document:
    """An epoch by phase. Shares are of the whole time, in which a rare long wait counts in full.

    What is forecast is the step: what the loop waits for data and copies is the loader's.
    """
    rows = [_row("batch", measured.batch, 1.0, None)]
    rows += [
        _row(f"  {name}", summary, measured.share(name), _forecast_s(forecast, f"{name}_s"))
        for name, summary in measured.phases.items()
    ]
    columns = (*_MEASURED, *_FORECAST) if forecast else _MEASURED
    names, means = list(measured.phases), [one.mean for one in measured.phases.values()]
    bars = [Series(name="measured", x=names, y=means)]
    if forecast is not None:
        bars.append(Series(name="forecast", x=names, y=[_forecast_s(forecast, f"{name}_s") for name in names]))
    workers = "" if measured.n_workers is None else f"{show_things(measured.n_workers, 'loader worker')}, "
    waited = show_percent(measured.data_fraction)
    batches = "1 batch" if measured.n_batches == 1 else f"{measured.n_batches:,} batches"
    return Document(
        title=f"An epoch of {measured.model} on {measured.environment.device}",
        subtitle=f"{measured.precision}, {measured.optimizer}, {workers}{_where(measured.environment)}",
        tables=(
            Table(
                title=f"{batches} of {show_things(measured.n_samples, 'sample')}",
                columns=columns,
                rows=tuple(tuple(row[: len(columns)]) for row in rows),
            ),
        ),
        charts=(
            Chart(
                title=f"Where the time of a batch of {measured.model} goes",
                kind="bar",
                series=tuple(bars),
                x_label="phase",
                y_label="mean time",
                y_show="duration",
            ),
        ),
        notes=(
            f"The epoch took {show_duration(measured.epoch_s)}, its first batch came after "
            f"{show_duration(measured.start_s)}: {show_ratio(measured.samples_per_s)} samples/s once it ran.",
            f"The loop waited for data in {waited} of the time.",
            *((no_forecast,) if no_forecast else ()),
            *(f"Of the forecast: {warning}" for warning in (forecast.warnings if forecast else ())),
            *_warnings(measured.warnings),
        ),
    )


def _row(name: str, summary: Summary, share: float, forecast_s: float | None) -> list[float | str | None]:
    ratio = forecast_s / summary.median if forecast_s is not None and summary.median else None
    return [name, summary.median, summary.minimum, summary.p10, summary.p90, share, forecast_s, ratio]


def _forecast_s(forecast: Forecast | None, name: str) -> float | None:
    return None if forecast is None else getattr(forecast, name, None)


def _settings(measured: Measurement) -> str:
    compiled = "compiled, " if measured.compiled else ""
    processes = f" in {measured.n_repeats} processes" if measured.n_repeats > 1 else ""
    return (
        f"{measured.precision}, {measured.optimizer}, {compiled}{show_things(measured.n_steps, 'step')}{processes}, "
        f"{_where(measured.environment)}"
    )


def _where(environment: Environment) -> str:
    return f"{show_things(environment.n_threads, 'thread')}, torch {environment.versions.get('torch', '?')}"


def _speed(measured: Measurement) -> tuple[str, ...]:
    low, high = measured.interval("samples_per_s")
    told = f"{show_ratio(measured.samples_per_s)} samples/s ({show_ratio(low)} to {show_ratio(high)})."
    first = measured.first_step_s
    if first is None or first < 2 * measured.step_s:
        return (told,)
    what = "compiles, allocates and warms up" if measured.compiled else "allocates and warms up"
    return (f"{told} The first step, which {what}, took {show_duration(first)}.",)


def forecast_notes(step_s: float, forecast: Forecast | None, no_forecast: str) -> tuple[str, ...]:
    """How right the forecast of a measured step was, or why there is none."""
    if forecast is None:
        return (no_forecast,) if no_forecast else ()
    low, high = forecast.interval("step_s")
    is_inside = low <= step_s <= high
    told = (
        f"traincast forecast {show_duration(forecast.step_s)} ({show_duration(low)} to {show_duration(high)}) for "
        f"this step, {forecast.step_s / step_s:.2g} x what was measured; the measured median is "
        f"{'inside' if is_inside else 'outside'} that interval."
    )
    return (told, *(f"Of the forecast: {warning}" for warning in forecast.warnings))


def _warnings(warnings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"Warning: {warning}" for warning in warnings)


def _phases_chart(measured: Measurement, forecast: Forecast | None) -> Chart:
    phases = list(measured.phases)
    series = [Series(name="measured", x=phases, y=[measured.phase_s(phase) for phase in phases])]
    if forecast is not None:
        series.append(Series(name="forecast", x=phases, y=[getattr(forecast, f"{phase}_s") for phase in phases]))
    return Chart(
        title=f"One step of {measured.model} on {measured.environment.device}, batch {measured.batch_size:,}",
        kind="bar",
        series=tuple(series),
        x_label="phase",
        y_label="time",
        y_show="duration",
    )
