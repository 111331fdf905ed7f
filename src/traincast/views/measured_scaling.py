"""What `traincast scale --measured FILE` shows: how measured epochs divide, and what a step waits for."""

from __future__ import annotations

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.scaling.measured import DataParallelFit, MeasuredScaling
from traincast.scaling.measured_epochs import FP32_BYTES, HUB, MEASURES, RING, MeasuredEpochs
from traincast.scaling.measured_file import MeasuredEpoch
from traincast.units import show_bytes_per_s, show_count, show_duration, show_percent, show_ratio, show_things

_WHICH = columns_of("batch_size: batch as integer, n_devices: GPUs")


def document_of(answer: MeasuredEpochs) -> Document:
    split, fit, size = answer.split, answer.fit, answer.n_parameters
    return Document(
        title=f"Measured epochs of {answer.source}",
        subtitle=f"strong scaling, {show_count(size)} parameters of {FP32_BYTES} bytes",
        verdict=_verdict(split),
        tables=(_split_table(split), _traffic_table(split), *(() if fit is None else (_fit_table(fit),))),
        charts=(_epochs(answer.rows), _parts(split), *(() if fit is None else (_fitted(fit),))),
        warnings=(*split.warnings, *(() if fit is None else fit.warnings)),
        notes=_notes(fit, size, answer.link_bytes_per_s),
        assumptions=tuple(f"{text}." for text in split.assumptions),
    )


def _split_table(split: MeasuredScaling) -> Table:
    columns = (
        *_WHICH,
        *columns_of(
            "epoch_s: epoch, speedup, efficiency_fraction: efficiency, serial_fraction: serial fraction, "
            "compute_s: compute, communication_s: communication"
        ),
    )
    rows = tuple(
        (point.row.batch_size, point.row.n_devices, point.row.epoch_s, *(getattr(point, name) for name in MEASURES))
        for point in split.points
    )
    return Table(title="An epoch, divided by assumption", columns=columns, rows=rows)


def _traffic_table(split: MeasuredScaling) -> Table:
    columns = (
        *_WHICH,
        *columns_of(
            "ring_bytes: sent by each, ring_bytes_per_s: rate, ring_link_fraction: of the link, "
            "hub_bytes: through GPU 0, hub_bytes_per_s: rate, hub_link_fraction: of the link"
        ),
    )
    rows = tuple(
        (point.row.batch_size, point.row.n_devices, *(getattr(point, name) for name in (*RING, *HUB)))
        for point in split.points
        if point.row.n_devices > 1
    )
    title = "Bytes of an epoch in that communication: as a ring, and as DataParallel"
    return Table(title=title, columns=columns, rows=rows)


def _fit_table(fit: DataParallelFit) -> Table:
    columns = (*_WHICH, *columns_of("epoch_s: measured, fitted_s: fitted, error_fraction: error, bound_by: bound by"))
    rows = tuple(
        (row.batch_size, row.n_devices, row.epoch_s, fitted_s, fitted_s / row.epoch_s - 1, bound)
        for row, fitted_s, bound in zip(fit.rows, fit.predicted_s, fit.bound_by, strict=True)
    )
    return Table(title="An epoch as the slowest of host, devices and input (DataParallel)", columns=columns, rows=rows)


def _verdict(split: MeasuredScaling) -> str:
    """The best speedup that was measured."""
    best = max(split.points, key=lambda point: point.speedup)
    return (
        f"Largest measured speedup: {show_ratio(best.speedup)} on {show_things(best.row.n_devices, 'GPU')} at batch "
        f"{best.row.batch_size:,} ({show_percent(best.efficiency_fraction)} efficient)."
    )


def _notes(fit: DataParallelFit | None, size: int, rate: float | None) -> tuple[str, ...]:
    notes = []
    if rate is None:
        notes.append("The share of the link is unknown: no link was named.")
    if fit is None:
        return (*notes, "A fit of what a step waits for needs at least four rows and two different numbers of GPUs.")
    model, left_out = fit.model, fit.leave_one_out_error_fraction
    notes += [
        f"Fitted: host {show_duration(model.host_s)} per step and {show_duration(model.replica_s)} per additional GPU, "
        f"compute {show_duration(model.compute_s_per_sample)} and input {show_duration(model.input_s_per_sample)} "
        "per sample.",
        "Fitted link: if an additional GPU cost only the transfer of its weights and gradients, the link of GPU 0 "
        f"would carry {show_bytes_per_s(model.least_link_bytes_per_s(size * FP32_BYTES))}; it is at least as fast.",
        f"Mean error of the fit {show_percent(fit.mean_error_fraction)}"
        + ("." if left_out is None else f", {show_percent(left_out)} on rows left out of the fit."),
    ]
    best = min(fit.baselines, key=lambda each: each.mean_error_fraction, default=None)
    if best is not None:
        notes.append(
            f"The best rule of thumb, {best.name}, is off by {show_percent(best.mean_error_fraction)} on rows with "
            "several GPUs."
        )
    return tuple(notes)


def _epochs(rows: tuple[MeasuredEpoch, ...]) -> Chart:
    """One line per batch size."""
    series = []
    for batch in dict.fromkeys(row.batch_size for row in rows):
        own = sorted((row for row in rows if row.batch_size == batch), key=lambda row: row.n_devices)
        counts, seconds = [row.n_devices for row in own], [row.epoch_s for row in own]
        series.append(Series(name=f"batch {batch:,}", x=counts, y=seconds))
    return Chart(
        title="Epochs over GPUs",
        kind="line",
        series=tuple(series),
        x_label="GPUs",
        y_label="epoch",
        x_show="integer",
        y_show="duration",
    )


def _fitted(fit: DataParallelFit) -> Chart:
    return Chart(
        title="Fitted epochs against measured ones",
        kind="scatter",
        series=(Series(name="epochs", x=[row.epoch_s for row in fit.rows], y=list(fit.predicted_s)),),
        x_label="measured",
        y_label="fitted",
        x_show="duration",
        y_show="duration",
        diagonal=True,
    )


def _parts(split: MeasuredScaling) -> Chart:
    labels = [f"{point.row.batch_size:,} on {point.row.n_devices}" for point in split.points]
    parts = {"compute (T1/N)": "compute_s", "communication (the rest)": "communication_s"}
    return Chart(
        title="Epochs, divided by assumption",
        kind="stacked_bar",
        series=tuple(
            Series(name=name, x=labels, y=[max(getattr(point, key), 0.0) for point in split.points])
            for name, key in parts.items()
        ),
        x_label="batch on GPUs",
        y_label="epoch",
        y_show="duration",
    )
