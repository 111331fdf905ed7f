"""What `traincast train scaling` forecasts of its runs: the answer before they run, and what a page adds to theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table, columns_of
from traincast.units import show_bytes, show_duration, show_things, show_usd
from traincast.views.train_scaling_cells import DEVICES, OF_ALL, OF_EACH, of_cell, told

if TYPE_CHECKING:
    from traincast.api.scaling_experiment import ScalingExperiment


def forecast_document(experiment: ScalingExperiment) -> Document:
    """Before the run."""
    forecast, settings = experiment.forecast, experiment.settings
    return Document(
        title=f"Scaling of {settings.model} on {forecast.on}: {show_things(len(experiment.cells), 'run')}",
        subtitle=f"forecast, before anything runs; {told(settings)}",
        tables=(_forecast_table(experiment),),
        charts=_forecast_chart(experiment),
        notes=_forecast_notes(experiment),
    )


def with_forecast(document: Document, experiment: ScalingExperiment) -> Document:
    """The result with its forecast, cost and warnings: a terminal has shown them before the run, a page has not."""
    on = experiment.forecast.on
    table = replace(_forecast_table(experiment), title=f"Forecast of an epoch of each run on {on}")
    own = [note for note in _forecast_notes(experiment) if note not in document.notes]
    return replace(
        document,
        tables=(*document.tables, table),
        notes=(*document.notes, *(f"Forecast for {on}: {note}" for note in own)),
    )


def _forecast_notes(experiment: ScalingExperiment) -> tuple[str, ...]:
    warnings = (f"Warning: {text}" for text in experiment.forecast.warnings)
    return (*_in_all(experiment), *experiment.notes, *warnings)


def _forecast_chart(experiment: ScalingExperiment) -> tuple[Chart, ...]:
    """What an epoch of each run goes to; none where nothing can be forecast."""
    cells = experiment.forecast.cells
    names = [f"{each.cell.n_devices} x {each.cell.batch_size:,}" for each in cells]
    parts = {"compute": "compute_s", "communication": "communication_s", "input": "input_s"}
    chart = Chart(
        title=f"An epoch of each run on {experiment.forecast.on}",
        kind="stacked_bar",
        series=tuple(
            Series(name=name, x=names, y=[getattr(each, part) for each in cells]) for name, part in parts.items()
        ),
        x_label="devices x batch of each",
        y_label="time",
        y_show="duration",
    )
    return (chart,) if cells else ()


def _forecast_table(experiment: ScalingExperiment) -> Table:
    """One row per run, and the rest of it empty where it cannot be forecast; nothing but the runs where none can be."""
    forecast = experiment.forecast
    has_cost = any(each.epoch_usd is not None for each in forecast.cells)
    columns = (
        DEVICES,
        OF_EACH,
        OF_ALL,
        *columns_of(
            "n_steps: steps, epoch_s: epoch, epoch_p10_s: p10, epoch_p90_s: p90, compute_s: compute, "
            "communication_s: communication, input_s: input, peak_memory_bytes: memory a device"
        ),
        *((Column(key="epoch_usd", header="cost", show="usd"),) if has_cost else ()),
    )
    rows: list[Row] = []
    for cell in experiment.cells:
        found = forecast.of(cell)
        which = (cell.n_devices, cell.batch_size, cell.global_batch_size, cell.n_steps(experiment.n_samples))
        if found is None:
            rows.append((*which, *(None for _ in columns[4:])))
            continue
        times = (found.epoch_s, found.low_s, found.high_s, found.compute_s, found.communication_s, found.input_s)
        rows.append((*which, *times, found.peak_memory_bytes, *((found.epoch_usd,) if has_cost else ())))
    n_shown = len(columns) if forecast.cells else 4
    return Table(title="An epoch of each run", columns=columns[:n_shown], rows=tuple(row[:n_shown] for row in rows))


def _in_all(experiment: ScalingExperiment) -> list[str]:
    """Time, cost and memory of the whole, and what does not fit."""
    forecast = experiment.forecast
    sentences = []
    if forecast.total_s is None:
        sentences.append("None of these runs can be forecast; the warnings say why, and they can be run all the same.")
    else:
        what = "all epochs of these runs" if len(forecast.cells) == len(experiment.cells) else "those that are forecast"
        cost = "" if forecast.cost_usd is None else f" and {show_usd(forecast.cost_usd)}"
        memory = show_bytes(forecast.peak_memory_bytes or 0)
        sentences.append(
            f"In all {show_duration(forecast.total_s)}{cost} for {what}, at most {memory} a device; starting processes "
            "is not in it."
        )
    return sentences + [f"It does not fit: {of_cell(each.cell)}." for each in forecast.cells if not each.fits]
