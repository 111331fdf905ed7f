"""The charts of sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, ReferenceLine, Series

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.measured import Measurement
    from traincast.measurement.sweeps.batch import BatchSweep
    from traincast.measurement.sweeps.optimizers import OptimizerSweep
    from traincast.measurement.sweeps.variants import VariantSweep
    from traincast.measurement.sweeps.workers import WorkersSweep


def batch_charts(sweep: BatchSweep, forecasts: Mapping[int, Forecast]) -> tuple[Chart, ...]:
    """Throughput as measured and as forecast, by batch size, and the memory that it costs."""
    rows, best = sweep.measured, sweep.recommended
    if best is None:
        return ()
    sizes = [row.batch_size for row in rows]
    predicted = [found.samples_per_s for found in forecasts.values()]
    enough = ReferenceLine(value=best.batch_size, label=f"{best.batch_size:,} is enough", axis="x")
    speed = Chart(
        title=f"Throughput of {sweep.model} by batch size",
        kind="line",
        series=(
            Series(name="measured", x=sizes, y=[row.samples_per_s for row in rows]),
            *([Series(name="forecast", x=list(forecasts), y=predicted)] if predicted else []),
        ),
        x_label="batch size",
        y_label="samples/s",
        x_show="integer",
        y_show="ratio",
        log_x=True,
        reference_lines=(enough,),
    )
    memory = Chart(
        title=f"Peak memory of {sweep.model} by batch size",
        kind="line",
        series=(Series(name="peak memory", x=sizes, y=[row.peak_memory_bytes for row in rows]),),
        x_label="batch size",
        y_label="peak memory",
        x_show="integer",
        y_show="bytes",
        log_x=True,
    )
    return speed, memory


def workers_charts(sweep: WorkersSweep) -> tuple[Chart, ...]:
    """What a batch takes with each number of workers, and which part of it is waiting."""
    labels = [str(row.n_workers) for row in sweep.rows]
    waits, works = [row.data_s for row in sweep.rows], [row.batch_s - row.data_s for row in sweep.rows]
    return (
        Chart(
            title=f"A batch of {sweep.batch_size:,} of {sweep.model} by loader workers",
            kind="stacked_bar",
            series=(
                Series(name="copy and step", x=labels, y=works),
                Series(name="waiting for data", x=labels, y=waits),
            ),
            x_label="loader workers",
            y_label="mean time of a batch",
            y_show="duration",
        ),
    )


def learned_charts(sweep: VariantSweep) -> list[Chart]:
    """Loss and accuracy of every variant by epoch."""
    learned = [row for row in sweep.rows if row.epochs]
    epochs = {row.label: list(range(1, len(row.epochs) + 1)) for row in learned}
    losses = tuple(Series(name=row.label, x=epochs[row.label], y=[one.loss for one in row.epochs]) for row in learned)
    accuracies = tuple(
        Series(name=row.label, x=epochs[row.label], y=[one.accuracy_fraction for one in row.epochs]) for row in learned
    )
    return [
        _by_epoch("Training loss by epoch", "loss", losses),
        _by_epoch("Test accuracy by epoch", "accuracy", accuracies, is_fraction=True),
    ]


def optimizer_charts(sweep: OptimizerSweep) -> tuple[Chart, ...]:
    """Steps by phase; where something was learned, loss and accuracy by epoch."""
    timed = [(row.optimizer, row.measurement) for row in sweep.rows if row.measurement is not None]
    steps = _phases(
        f"A step of {sweep.model} by optimizer", [name for name, _ in timed], [measured for _, measured in timed]
    )
    learned = [row for row in sweep.rows if row.epochs]
    if not learned:
        return (steps,)
    epochs = {row.optimizer: list(range(1, len(row.epochs) + 1)) for row in learned}
    losses = tuple(
        Series(name=row.optimizer, x=epochs[row.optimizer], y=[one.loss for one in row.epochs]) for row in learned
    )
    accuracies = tuple(
        Series(name=row.optimizer, x=epochs[row.optimizer], y=[one.accuracy_fraction for one in row.epochs])
        for row in learned
    )
    return (
        _by_epoch("Training loss by epoch and optimizer", "loss", losses),
        _by_epoch("Test accuracy by epoch and optimizer", "accuracy", accuracies, is_fraction=True),
        steps,
    )


def variant_chart(sweep: VariantSweep) -> Chart:
    """Steps by phase."""
    rows = [(row.label, row.measurement) for row in sweep.measured if row.measurement is not None]
    title = f"A step of {sweep.model}, batch {sweep.batch_size:,}"
    return _phases(title, [label for label, _ in rows], [one for _, one in rows])


def device_chart(sweep: VariantSweep, forecasts: Sequence[Forecast]) -> Chart:
    """What was measured here beside what is forecast elsewhere; the times lie far apart."""
    here = [(row.label, row.measurement.step_s) for row in sweep.measured if row.measurement is not None]
    return Chart(
        title=f"A step of {sweep.model}, batch {sweep.batch_size:,}: measured here, forecast elsewhere",
        kind="bar",
        series=(
            Series(name="measured", x=[label for label, _ in here], y=[step_s for _, step_s in here]),
            Series(name="forecast", x=[one.place for one in forecasts], y=[one.step_s for one in forecasts]),
        ),
        x_label="device",
        y_label="step time",
        y_show="duration",
        log_y=True,
    )


def beside_chart(model: str, measured_s: Mapping[str, float], forecast_s: Mapping[str, float]) -> Chart:
    """A step as measured and as forecast, by what it was measured for."""
    return Chart(
        title=f"A step of {model}: measured and forecast",
        kind="bar",
        series=(
            Series(name="measured", x=list(measured_s), y=list(measured_s.values())),
            Series(name="forecast", x=list(forecast_s), y=list(forecast_s.values())),
        ),
        x_label="",
        y_label="step time",
        y_show="duration",
    )


def _phases(title: str, labels: Sequence[str], measured: Sequence[Measurement]) -> Chart:
    phases = list(measured[0].phases)
    return Chart(
        title=title,
        kind="stacked_bar",
        series=tuple(Series(name=phase, x=labels, y=[one.phase_s(phase) for one in measured]) for phase in phases),
        x_label="",
        y_label="median of each phase",
        y_show="duration",
    )


def _by_epoch(title: str, label: str, series: tuple[Series, ...], *, is_fraction: bool = False) -> Chart:
    return Chart(
        title=title,
        kind="line",
        series=series,
        x_label="epoch",
        y_label=label,
        x_show="integer",
        y_show="percent" if is_fraction else "ratio",
    )
