"""Charts of records in a store: how many there are, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Kind, Series
from traincast.report.table import Show

if TYPE_CHECKING:
    from traincast.api.layer_forecasts import LayerForecast
    from traincast.records.record import Record
    from traincast.records.store import Group

_MOST_DOTS = 3_000  # of a chart
_MOST_LINES = 14
Point = tuple[str, float, float]  # of which series, x and y


def counts_chart(groups: Sequence[Group]) -> Chart:
    """How many there are of each kind and campaign, and how many of these could not be measured."""
    names = [f"{group.kind}, {group.campaign}" for group in groups]
    return Chart(
        title="Records by kind and campaign",
        kind="stacked_bar",
        series=(
            Series(name="measured", x=names, y=[group.n - group.n_failed for group in groups]),
            Series(name="failed", x=names, y=[group.n_failed for group in groups]),
        ),
        x_label="kind, campaign",
        y_label="records",
        y_show="integer",
    )


def times_charts(records: Iterable[Record]) -> tuple[Chart, ...]:
    """Layers and ops by their work, whole models by their batch; those that there are."""
    done = [record for record in records if record.error is None]
    return tuple(
        chart
        for chart in (
            _chart("Time by work", _by_work(done, "flop"), "work of the forward pass", "flop", kind="scatter"),
            _chart(
                "Time by bytes, of what has no flop",
                _by_work(done, "bytes"),
                "bytes moved forward",
                "bytes",
                kind="scatter",
            ),
            _chart("Steps of models", _by_batch(done), "batch", "integer", kind="line"),
        )
        if chart is not None
    )


def predicted_chart(layers: Sequence[LayerForecast]) -> Chart:
    """A point each; on the diagonal the forecast is right."""
    points = [(one.layer, one.measured_s, one.predicted_s) for one in layers]
    return Chart(
        title="Layers: predicted and measured",
        kind="scatter",
        series=_series(points),
        x_label="measured step",
        y_label="predicted step",
        x_show="duration",
        y_show="duration",
        log_x=True,
        log_y=True,
        diagonal=True,
    )


def _by_work(records: Sequence[Record], what: str) -> list[Point]:
    """Layers and ops with so many flop; those without any, such as pooling, by the bytes they move."""
    from traincast.microbenchmarks.layer_tasks import KIND as LAYER
    from traincast.microbenchmarks.op_tasks import ELEMENTWISE
    from traincast.microbenchmarks.op_tasks import KIND as OP

    points = []
    for record in records:
        if record.kind not in (LAYER, OP) or bool(record.values.get("flop")) != (what == "flop"):
            continue
        seconds, size = record.values.get("step_s", record.values.get("median_s")), record.values.get(what)
        name = str(record.task.get("layer", record.task.get("op")))
        if seconds and size:
            points.append(("elementwise" if name in ELEMENTWISE else name, float(size), float(seconds)))
    return points[:: max(1, -(-len(points) // _MOST_DOTS))]


def _by_batch(records: Sequence[Record]) -> list[Point]:
    from traincast.records.identity import measurements_among, settings_of

    points = []
    for record in measurements_among(records):
        settings, seconds = settings_of(record), record.values.get("step_s")
        batch = settings.get("batch_size")
        if isinstance(batch, int) and isinstance(seconds, int | float) and seconds > 0:
            points.append((f"{settings.get('model', '?')} on {record.environment.device}", float(batch), seconds))
    return sorted(points)


def _chart(title: str, points: Sequence[Point], label: str, show: Show, *, kind: Kind) -> Chart | None:
    if not points:
        return None
    series = _series(points)[:_MOST_LINES]
    return Chart(
        title=title if len(series) > 1 else f"{title}: {series[0].name}",
        kind=kind,
        series=series,
        x_label=label,
        y_label="measured time",
        x_show=show,
        y_show="duration",
        log_x=True,
        log_y=True,
    )


def _series(points: Sequence[Point]) -> tuple[Series, ...]:
    """One for each name."""
    names = dict.fromkeys(name for name, _, _ in points)
    return tuple(
        Series(name=name, x=[x for own, x, _ in points if own == name], y=[y for own, _, y in points if own == name])
        for name in names
    )
