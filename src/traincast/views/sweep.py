"""What `traincast measure --sweep` shows: a table, charts and a verdict for each kind of sweep."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table, columns_of
from traincast.units import show_duration
from traincast.views.sweep_charts import (
    batch_charts,
    beside_chart,
    device_chart,
    learned_charts,
    optimizer_charts,
    variant_chart,
    workers_charts,
)

if TYPE_CHECKING:
    from traincast.api.model_sweep import ModelSweep
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement
    from traincast.measurement.sweeps.batch import BatchRow, BatchSweep
    from traincast.measurement.sweeps.optimizers import OptimizerRow, OptimizerSweep
    from traincast.measurement.sweeps.variants import VariantRow, VariantSweep
    from traincast.measurement.sweeps.workers import WorkersRow, WorkersSweep
    from traincast.report.chart import Chart

_STEP = Column(key="step_s", header="step", show="duration")
_SPREAD = columns_of("step_p10_s: p10, step_p90_s: p90")
_FORECAST = columns_of("forecast_s: forecast, forecast_over_measured: forecast / measured as ratio")
_SPEED = Column(key="samples_per_s", header="samples/s", show="ratio")
_STOPPED = "Stopped by Ctrl-C: what had been measured until then is shown."
_TITLES = {
    "norm": "with and without batch norm",
    "device": "by device",
    "precision": "by precision",
    "compile": "eager and compiled",
}


def document_of(answer: ModelSweep) -> Document:
    """One row per batch size, worker count, optimizer or variant, beside its forecast."""
    sweep: Any = answer.sweep  # of which kind, `what` says
    if answer.what == "workers":
        return workers_document(sweep)
    if answer.what == "batch":
        return batch_document(sweep, answer.forecasts, answer.no_forecast)
    if answer.what == "optimizers":
        return optimizers_document(sweep, answer.forecasts, answer.no_forecast)
    return variants_document(sweep, answer.forecasts, answer.elsewhere, answer.no_forecast)


def line_of(row: Any) -> str:
    """A row as it comes."""
    found = row.to_dict()
    name = next(str(found[key]) for key in ("batch_size", "n_workers", "optimizer", "label") if key in found)
    took = found.get("step_s") or found.get("batch_s")
    return f"{name}: {found.get('status') or 'not measured' if took is None else show_duration(took)}"


def batch_document(sweep: BatchSweep, forecasts: Mapping[int, Forecast], no_forecast: str = "") -> Document:
    """`forecasts` are by batch size, of those that were measured."""
    columns = (
        Column(key="batch_size", header="batch", show="integer"),
        _STEP,
        *_SPREAD,
        _SPEED,
        *columns_of("step_per_sample_s: a sample, peak_memory_bytes: peak memory"),
        *_FORECAST,
        Column(key="status", header="", show="name"),
    )

    def cells(row: BatchRow) -> tuple[Cell, ...]:
        speed = (row.samples_per_s, row.step_per_sample_s, row.peak_memory_bytes)
        status = "" if row.status == "measured" else row.status
        predicted = _predicted(row.measurement, forecasts.get(row.batch_size))
        return (row.batch_size, row.step_s, *_interval(row.measurement), *speed, *predicted, status)

    measured = [row.measurement for row in sweep.rows if row.measurement is not None]
    return Document(
        title=f"{sweep.model} by batch size",
        subtitle=_settings(measured),
        tables=(Table(title="Batch sizes", columns=columns, rows=tuple(cells(row) for row in sweep.rows)),),
        charts=batch_charts(sweep, forecasts),
        notes=(
            sweep.verdict,
            "Peak memory is that of the whole process, with the libraries that it loads.",
            *_about(forecasts, no_forecast),
            *_remarks(measured, was_stopped=False),  # the verdict says where it was stopped
        ),
    )


def workers_document(sweep: WorkersSweep) -> Document:
    columns = (
        Column(key="n_workers", header="workers", show="integer"),
        _SPEED,
        *columns_of("batch_s: a batch, data_s: waits for data, data_fraction: share, start_s: first batch after"),
    )

    def cells(row: WorkersRow) -> tuple[Cell, ...]:
        return (
            row.n_workers,
            row.samples_per_s,
            row.batch_s,
            row.data_s,
            row.epoch.data_fraction,
            row.epoch.start_s,
        )

    return Document(
        title=f"{sweep.model} by loader workers, batch {sweep.batch_size:,}",
        subtitle=f"{sweep.data}; {sweep.n_cores} cores",
        tables=(Table(title="Workers", columns=columns, rows=tuple(cells(row) for row in sweep.rows)),),
        charts=workers_charts(sweep),
        notes=(sweep.verdict, *_remarks([row.epoch for row in sweep.rows], sweep.was_stopped)),
    )


def optimizers_document(sweep: OptimizerSweep, forecasts: Mapping[str, Forecast], no_forecast: str = "") -> Document:
    """`forecasts` are by optimizer, of those that were measured."""
    has_learned = any(row.epochs for row in sweep.rows)
    columns = (
        Column(key="optimizer", header="optimizer", show="name"),
        _STEP,
        *_SPREAD,
        Column(key="optimizer_s", header="update", show="duration"),
        *_FORECAST,
    )
    learned = columns_of(
        "learning_rate: learning rate as name, loss: last loss as name, accuracy_fraction: accuracy, epoch_s: an epoch"
    )

    def cells(row: OptimizerRow) -> tuple[Cell, ...]:
        step_s = None if row.measurement is None else row.measurement.step_s
        predicted = _predicted(row.measurement, forecasts.get(row.optimizer))
        timed = (row.optimizer, step_s, *_interval(row.measurement), row.update_s, *predicted)
        if not has_learned:
            return timed
        if row.last is None:
            return (*timed, None, None, None, None)
        scores = (f"{row.last.loss:.4f}", row.last.accuracy_fraction, row.last.epoch_s)
        return (*timed, f"{row.learning_rate:g}", *scores)

    measured = [row.measurement for row in sweep.rows if row.measurement is not None]
    return Document(
        title=f"{sweep.model} by optimizer, batch {sweep.batch_size:,}",
        subtitle=_settings(measured, with_optimizer=False),
        tables=(
            Table(
                title="Optimizers",
                columns=(*columns, *learned) if has_learned else columns,
                rows=tuple(cells(row) for row in sweep.rows),
            ),
        ),
        charts=(*optimizer_charts(sweep), *_beside(sweep.model, forecasts, sweep.rows, "optimizer")),
        notes=(
            sweep.verdict,
            *((sweep.remark,) if sweep.remark else ()),
            *_about(forecasts, no_forecast),
            *(_sentence(f"{row.optimizer}: {row.reason}") for row in sweep.rows if row.reason),
            *_remarks(measured, sweep.was_stopped),
        ),
    )


def variants_document(
    sweep: VariantSweep,
    forecasts: Mapping[str, Forecast] | None = None,
    elsewhere: Sequence[Forecast] = (),
    no_forecast: str = "",
) -> Document:
    """`forecasts` are by label, of what was measured; `elsewhere` are those of devices that are not here."""
    measured = [row.measurement for row in sweep.measured if row.measurement is not None]
    known = forecasts or {}
    tables = [_variants_table(sweep, known)]
    charts = [variant_chart(sweep)] if measured else []
    if elsewhere:
        tables.append(_forecast_table(elsewhere))
        charts.append(device_chart(sweep, elsewhere))
    charts += _beside(sweep.model, known, sweep.measured, "label")
    if any(row.epochs for row in sweep.rows):
        tables.append(_learned_table(sweep))
        charts += learned_charts(sweep)
    reasons = tuple(f"{row.label}: {row.reason}" for row in sweep.rows if row.reason)
    return Document(
        title=f"{sweep.model} {_TITLES[sweep.what]}, batch {sweep.batch_size:,}",
        subtitle=_settings(measured, with_precision=sweep.what != "precision"),
        tables=tuple(tables),
        charts=tuple(charts),
        notes=(
            sweep.verdict,
            *(_sentence(reason) for reason in reasons),
            *_about(known, no_forecast),
            *_remarks(measured, sweep.was_stopped),
        ),
    )


def _variants_table(sweep: VariantSweep, forecasts: Mapping[str, Forecast]) -> Table:
    columns = [
        Column(key="label", header="", show="name"),
        _STEP,
        *_SPREAD,
        *columns_of("forward_s: forward, backward_s: backward, optimizer_s: optimizer"),
        _SPEED,
        Column(key="speedup", header="times as fast", show="ratio"),
    ]
    if sweep.what == "norm":
        columns.append(Column(key="page_fault_bytes", header="page faults", show="bytes"))
    if sweep.what == "compile":
        columns.append(Column(key="compile_s", header="compiling", show="duration"))
    columns += _FORECAST if forecasts else ()

    def cells(row: VariantRow) -> tuple[Cell, ...]:
        one = row.measurement
        if one is None:
            return (row.label, *(None for _ in columns[1:]))
        phases = tuple(one.phase_s(phase) for phase in ("forward", "backward", "optimizer"))
        found = (row.label, one.step_s, *_interval(one), *phases, one.samples_per_s, sweep.ratio(row))
        extra = {"norm": (row.page_fault_bytes,), "compile": (row.compile_s,)}
        predicted = _predicted(one, forecasts.get(row.label)) if forecasts else ()
        return (*found, *extra.get(sweep.what, ()), *predicted)

    return Table(title="Measured", columns=tuple(columns), rows=tuple(cells(row) for row in sweep.rows))


def _learned_table(sweep: VariantSweep) -> Table:
    """Loss and accuracy of every epoch, the variants side by side."""
    learned = [row for row in sweep.rows if row.epochs]
    columns = [Column(key="epoch", header="epoch", show="integer")]
    for row in learned:
        key = row.label.replace(" ", "_")
        columns.append(Column(key=f"{key}_loss", header=f"{row.label}: loss", show="ratio"))
        columns.append(Column(key=f"{key}_accuracy_fraction", header="accuracy", show="percent"))
    n_epochs = max(len(row.epochs) for row in learned)
    rows = tuple((place + 1, *(cell for row in learned for cell in _score(row, place))) for place in range(n_epochs))
    return Table(title="Learned", columns=tuple(columns), rows=rows)


def _score(row: VariantRow, place: int) -> tuple[Cell, Cell]:
    if place >= len(row.epochs) or not math.isfinite(row.epochs[place].loss):
        return None, row.epochs[place].accuracy_fraction if place < len(row.epochs) else None
    return row.epochs[place].loss, row.epochs[place].accuracy_fraction


def _forecast_table(forecasts: Sequence[Forecast]) -> Table:
    columns = (Column(key="device", header="device", show="name"), _STEP, *_SPREAD, _SPEED)
    return Table(
        title="Forecast for GPUs that are not here",
        columns=columns,
        rows=tuple((one.place, one.step_s, *one.interval("step_s"), one.samples_per_s) for one in forecasts),
        notes=tuple(dict.fromkeys(f"Warning: {one.place}: {text}" for one in forecasts for text in one.warnings)),
    )


def _predicted(measured: Measurement | None, forecast: Forecast | None) -> tuple[float | None, float | None]:
    """A step as it is forecast, and over the measured one."""
    if measured is None or forecast is None:
        return None, None
    return forecast.step_s, forecast.step_s / measured.step_s


def _beside(model: str, forecasts: Mapping[str, Forecast], rows: Sequence[Any], by: str) -> list[Chart]:
    """What was measured beside what is forecast of it, if anything is."""
    steps_s = {getattr(row, by): row.measurement.step_s for row in rows if row.measurement is not None}
    return [beside_chart(model, steps_s, {name: one.step_s for name, one in forecasts.items()})] if forecasts else []


def _about(forecasts: Mapping[Any, Forecast], no_forecast: str) -> tuple[str, ...]:
    """Why something has none, and what is to be known of the others."""
    told = dict.fromkeys(f"Of the forecast: {text}" for one in forecasts.values() for text in one.warnings)
    return (*((no_forecast,) if no_forecast else ()), *told)


def _interval(measurement: Measurement | None) -> tuple[float | None, float | None]:
    return (None, None) if measurement is None else measurement.interval("step_s")


def _settings(measured: Sequence[Measurement], *, with_optimizer: bool = True, with_precision: bool = True) -> str:
    if not measured:
        return ""
    first = measured[0]
    environment = first.environment
    threads = "1 thread" if environment.n_threads == 1 else f"{environment.n_threads} threads"
    parts = [environment.device, threads, f"torch {environment.versions.get('torch', '?')}"]
    parts += [first.precision] if with_precision else []
    parts += [first.optimizer] if with_optimizer else []
    return ", ".join(parts)


def _remarks(measured: Iterable[Measurement | EpochMeasurement], was_stopped: bool) -> tuple[str, ...]:
    """Each kind of warning once, with the numbers of the first row that has it."""
    kinds: dict[str, str] = {}
    for text in (text for one in measured for text in one.warnings):
        kinds.setdefault(re.sub(r"[0-9.,]+", "", text), f"Warning: {text}")
    return (*((_STOPPED,) if was_stopped else ()), *kinds.values())


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
