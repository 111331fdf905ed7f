"""The charts of `traincast scale`: throughput, runtime and cost over GPUs, and what a GPU spends its time on."""

from __future__ import annotations

from traincast.forecasting.scale import Scaling, ScalingCurve
from traincast.forecasting.scale_compare import CurveComparison
from traincast.report.chart import Chart, Series
from traincast.report.table import Show, show_value


def charts_of(scaling: Scaling, comparison: CurveComparison | None = None) -> tuple[Chart, ...]:
    """Charts whose numbers are known."""
    charts = [_lines(scaling, comparison, "samples_per_s", "Throughput", "samples/s", "ratio")]
    if scaling.question.n_samples is not None:
        charts.append(_lines(scaling, comparison, "total_s", "Runtime", "runtime", "duration"))
    if scaling.strong.one.cost_usd is not None:
        charts.append(_lines(scaling, comparison, "cost_usd", "Cost", "cost", "usd"))
    if comparison is not None:
        charts.append(_errors(scaling, comparison))
    return (*charts, *(_parts(curve, scaling) for curve in (scaling.strong, scaling.weak)))


def _lines(
    scaling: Scaling, comparison: CurveComparison | None, name: str, title: str, label: str, show: Show
) -> Chart:
    batches = scaling.batches
    labels = {"strong": f"strong, batch {batches.of_all:,}", "weak": f"weak, {batches.of_each:,} per GPU"}
    series = [_line(curve, labels[curve.kind], name, show) for curve in (scaling.strong, scaling.weak)]
    if comparison is not None:
        points = comparison.by_count
        values = [getattr(point, name) for point in points.values()]
        series.append(Series(name=f"measured ({comparison.curve.kind})", x=list(points), y=values))
    return Chart(
        title=f"{title} of {scaling.model} on {scaling.on}",
        kind="line",
        series=tuple(series),
        x_label="GPUs",
        y_label=label,
        x_show="integer",
        y_show=show,
    )


def _errors(scaling: Scaling, comparison: CurveComparison) -> Chart:
    points = comparison.by_count
    counts = [f"{n:,} GPU{'s' * (n > 1)}" for n in points]
    return Chart(
        title=f"Errors of the forecasts of {scaling.model} on {scaling.on}",
        kind="bar",
        series=(
            Series(name="throughput", x=counts, y=[one.throughput_error_fraction for one in points.values()]),
            Series(name="runtime", x=counts, y=[one.error_fraction for one in points.values()]),
        ),
        x_label="",
        y_label="predicted / measured - 1",
        y_show="percent",
    )


def _line(curve: ScalingCurve, label: str, name: str, show: Show) -> Series:
    values = [getattr(point.forecast, name) for point in curve.points]
    spread = [point.forecast.interval(name) for point in curve.points]
    return Series(
        name=label,
        x=[point.n_devices for point in curve.points],
        y=values,
        text=[
            f"{point.n_devices}: {show_value(value, show)} ({show_value(low, show)} to {show_value(high, show)})"
            for point, value, (low, high) in zip(curve.points, values, spread, strict=True)
        ],
    )


def _parts(curve: ScalingCurve, scaling: Scaling) -> Chart:
    """Parts of an epoch, or of a step if the number of samples is unknown, without hidden communication."""
    unit = "an epoch" if scaling.question.n_samples else "a step"
    points = curve.points
    seconds = {
        "compute": [point.compute_s for point in points],
        "exposed communication and waiting": [point.forecast.exposed_communication_s for point in points],
        "waiting for input": [point.forecast.input_wait_s for point in points],
    }
    return Chart(
        title=f"{curve.kind.capitalize()} scaling of {scaling.model}: {unit} on each GPU",
        kind="stacked_bar",
        series=tuple(
            Series(
                name=part,
                x=[f"{point.n_devices:,}" + " GPU" + "s" * (point.n_devices > 1) for point in points],
                y=[(point.n_steps or 1) * value for point, value in zip(points, values, strict=True)],
            )
            for part, values in seconds.items()
            if any(values)
        ),
        x_label="",
        y_label="time",
        y_show="duration",
    )
