"""What `traincast bench` shows: how many rows there are, and on a page what they took beside what was predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Column, Table, columns_of

if TYPE_CHECKING:
    from traincast.api.benchmarks import BenchRun
    from traincast.api.layer_forecasts import LayerForecast
    from traincast.records.campaign import Progress
    from traincast.report.chart import Chart

_PREDICTED = columns_of(
    "layer as name, n: layers as integer, median_ratio: predicted/measured, within_2x_fraction: within twice"
)


def document_of(run: BenchRun, *, with_charts: bool = True) -> Document:
    """Forecasts are made for a page or an image alone: each captures its layer."""
    progress = run.progress
    tables, charts, notes = _measured(run.store, run.campaign) if with_charts else ((), (), ())
    if progress.n_failed:
        notes = (*notes, "Failed rows are stored with the reason; --retry-failed repeats them.")
    return Document(
        title=f"{progress.n_done:,} of {progress.n_tasks:,} {run.what} are in '{run.store}', campaign '{run.campaign}'",
        tables=(_counts(progress), *tables),
        charts=charts,
        notes=notes,
    )


def _counts(progress: Progress) -> Table:
    counts = (
        ("n_now", "now", progress.n_now),
        ("n_before", "before", progress.n_before),
        ("n_elsewhere", "by others", progress.n_elsewhere),
        ("n_failed", "of these failed", progress.n_failed),
        ("n_left", "left", progress.n_left),
    )
    return Table(
        title="Records",
        columns=tuple(Column(key=key, header=header, show="integer") for key, header, _ in counts),
        rows=(tuple(value for *_, value in counts),),
    )


def _measured(store: Path, campaign: str) -> tuple[tuple[Table, ...], tuple[Chart, ...], tuple[str, ...]]:
    """All of the campaign, whenever it was measured."""
    from traincast.api.layer_forecasts import forecast_layers
    from traincast.records.store import Store
    from traincast.views.records_charts import counts_chart, predicted_chart, times_charts

    with Store(store, create=False) as opened:
        records = opened.records(campaign=campaign)
        groups = [group for group in opened.groups() if group.campaign == campaign]
    layers, told = forecast_layers(records)
    charts = times_charts(records) or ((counts_chart(groups),) if groups else ())
    notes = ["Times are medians on warm caches; flop and bytes are those of the forward pass."]
    notes += [f"Of the forecasts: {told}"] if told else []
    if not layers:
        return (), charts, tuple(notes)
    notes.append("Forecasts are of steps of single layers, evenly chosen; pooling has no weights and so no forecast.")
    return (_predicted(layers),), (predicted_chart(layers), *charts), tuple(notes)


def _predicted(layers: tuple[LayerForecast, ...]) -> Table:
    import statistics

    rows = []
    for kind in dict.fromkeys(one.layer for one in layers):
        ratios = [one.predicted_s / one.measured_s for one in layers if one.layer == kind]
        within = sum(0.5 <= ratio <= 2 for ratio in ratios) / len(ratios)
        rows.append((kind, len(ratios), statistics.median(ratios), within))
    return Table(title="Predicted beside measured", columns=_PREDICTED, rows=tuple(rows))
