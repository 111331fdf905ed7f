"""What `traincast train scaling` shows: its forecast, then the three tables in both definitions of scaling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table, columns_of
from traincast.units import show_things
from traincast.views.train_scaling_cells import DEVICES, OF_ALL, OF_EACH, of_cell, told

if TYPE_CHECKING:
    from traincast.api.scaling_experiment import ScalingResult
    from traincast.recipes.scaling_experiment.analysis import Compared, SpeedupComparison

_FIXED = {"weak": "the batch of a device stays (weak)", "strong": "the batch of all devices stays (strong)"}
_WHICH = {"weak": (OF_EACH, DEVICES), "strong": (OF_ALL, DEVICES)}


def result_document(result: ScalingResult, folder: Path) -> Document:
    """Tables 1 to 3, each in both definitions, and predicted beside measured."""
    settings, both = result.experiment.settings, (result.weak, result.strong)
    tables = [make(comparison) for make in (_speedups, _parts, _bandwidths) for comparison in both if comparison.rows]
    warnings = dict.fromkeys(
        f"Warning: {comparison.kind} scaling: {text}" for comparison in both for text in comparison.warnings
    )
    tables.append(_predictions(result))
    return Document(
        title=f"Scaling of {settings.model}, {show_things(len(result.runs), 'run')}",
        subtitle=f"{told(settings)}; {_where(result)}",
        tables=tuple(tables),
        charts=(
            *(make(comparison) for make in (_speedup_chart, _parts_chart) for comparison in both),
            *_predicted_chart(result),
        ),
        notes=(
            *_NOTES,
            *result.experiment.notes,
            *(f"{of_cell(cell)}: {text}" for cell, text in result.failures),
            *(("--retry-failed tries these again.",) if result.failures else ()),
            f"'{folder}' has the log of each run; 'traincast scale {settings.model} --measured "
            f"{folder / 'measured.csv'}' reads its epochs.",
            *warnings,
            *(f"Warning: {text}" for text in result.warnings),
        ),
    )


_NOTES = (
    "Epochs are the mean of those after the first, by the slowest process. Speedup is T1/TN of epochs.",
    "Measured: communication is what reducing gradients adds to a step, for all steps; compute is the rest.",
    "Assumed: compute is T1/N and all else communication, which is all that epochs alone can tell.",
    "Bytes are those that each device of a ring sends. A rate above the link's says that backward hid communication.",
)


def _speedups(comparison: SpeedupComparison) -> Table:
    other = OF_ALL if comparison.kind == "weak" else OF_EACH
    columns = (
        *_WHICH[comparison.kind],
        other,
        *columns_of(
            "n_steps: steps, first_epoch_s: first epoch, epoch_s: epoch, speedup, "
            "efficiency_fraction: efficiency, serial_fraction: serial fraction"
        ),
    )
    rows = [
        (
            *_which(each),
            each.run.cell.global_batch_size if comparison.kind == "weak" else each.run.cell.batch_size,
            each.run.n_steps,
            each.run.epochs_s[0],
            each.run.epoch_s,
            each.point.speedup,
            each.point.efficiency_fraction,
            each.serial_fraction,
        )
        for each in comparison.rows
    ]
    return Table(title=f"1. Time and speedup: {_FIXED[comparison.kind]}", columns=columns, rows=tuple(rows))


def _parts(comparison: SpeedupComparison) -> Table:
    columns = (
        *_WHICH[comparison.kind],
        Column(key="epoch_s", header="epoch", show="duration"),
        Column(key="input_s", header="input", show="duration"),
        Column(key="compute_s", header="compute", show="duration"),
        Column(key="communication_s", header="communication", show="duration"),
        Column(key="assumed_compute_s", header="compute, assumed", show="duration"),
        Column(key="assumed_communication_s", header="communication, assumed", show="duration"),
    )
    rows = [
        (
            *_which(each),
            each.run.epoch_s,
            each.run.input_s,
            each.run.compute_s,
            each.run.communication_s,
            each.point.compute_s,
            each.point.communication_s,
        )
        for each in comparison.rows
    ]
    return Table(
        title=f"2. Compute and communication of an epoch: {_FIXED[comparison.kind]}", columns=columns, rows=tuple(rows)
    )


def _bandwidths(comparison: SpeedupComparison) -> Table:
    columns = (
        *_WHICH[comparison.kind],
        *columns_of(
            "bytes_sent_bytes: sent by each, exposed_bytes_per_s: measured, "
            "exposed_link_fraction: of the link, assumed_bytes_per_s: assumed, "
            "assumed_link_fraction: of the link, reduced_bytes_per_s: reduced alone, "
            "reduced_link_fraction: of the link, link_bytes_per_s: link"
        ),
    )
    rows = []
    for each in comparison.rows:
        if each.run.cell.n_devices == 1:
            continue
        rates = (each.exposed_bytes_per_s, each.assumed_bytes_per_s, each.reduced_bytes_per_s)
        shown = [value for rate in rates for value in (rate, each.of_link(rate))]
        rows.append((*_which(each), each.run.bytes_sent, *shown, each.link_bytes_per_s))
    return Table(title=f"3. Bandwidth: {_FIXED[comparison.kind]}", columns=columns, rows=tuple(rows))


_MEASURED = columns_of("epoch_s: measured, communication_s: its communication")
_PREDICTED = columns_of(
    "predicted_s: predicted epoch, predicted_p10_s: p10, predicted_p90_s: p90, ratio: predicted/measured, "
    "predicted_communication_s: predicted communication"
)
(_REASON,) = columns_of("reason: why there is no prediction")


def _predictions(result: ScalingResult) -> Table:
    """Every run with its prediction, or with the reason why there is none."""
    forecast = result.experiment.forecast
    expected = [forecast.of(run.cell) for run in result.runs]
    predicted = _PREDICTED if any(expected) else ()
    reason = () if all(expected) else (_REASON,)
    rows: list[Row] = []
    for run, found in zip(result.runs, expected, strict=True):
        which = (run.cell.n_devices, run.cell.batch_size, run.epoch_s, run.communication_s)
        if found is None:
            why = forecast.reasons.get(run.cell.n_devices, "")
            rows.append((*which, *(None for _ in predicted), why))
            continue
        times = (found.epoch_s, found.low_s, found.high_s, found.epoch_s / run.epoch_s, found.communication_s)
        rows.append((*which, *times, *(None for _ in reason)))
    columns = (DEVICES, OF_EACH, *_MEASURED, *predicted, *reason)
    return Table(title="Predicted and measured", columns=columns, rows=tuple(rows))


def _predicted_chart(result: ScalingResult) -> tuple[Chart, ...]:
    """Epochs predicted beside measured; none where nothing was forecast."""
    from traincast.views.train import times_chart

    found = [(run, result.experiment.forecast.of(run.cell)) for run in result.runs]
    rows = [
        (f"{run.cell.batch_size:,} on {run.cell.n_devices}", expected.epoch_s, run.epoch_s)
        for run, expected in found
        if expected is not None
    ]
    return (times_chart(rows, "batch on devices"),) if rows else ()


def _speedup_chart(comparison: SpeedupComparison) -> Chart:
    lines = []
    for batch in dict.fromkeys(each.batch_size for each in comparison.rows):
        own = [each for each in comparison.rows if each.batch_size == batch]
        counts = [each.run.cell.n_devices for each in own]
        lines.append(Series(name=f"batch {batch:,}", x=counts, y=[each.point.speedup for each in own]))
    return Chart(
        title=f"Speedup: {_FIXED[comparison.kind]}",
        kind="line",
        series=tuple(lines),
        x_label="devices",
        y_label="speedup",
        x_show="integer",
        y_show="ratio",
        reference_lines=(ReferenceLine(value=1.0, label="one device"),),
    )


def _parts_chart(comparison: SpeedupComparison) -> Chart:
    labels = [f"{each.batch_size:,} on {each.run.cell.n_devices}" for each in comparison.rows]
    parts = {"input": "input_s", "compute": "compute_s", "communication": "communication_s"}
    return Chart(
        title=f"Epochs, measured parts: {_FIXED[comparison.kind]}",
        kind="stacked_bar",
        series=tuple(
            Series(name=name, x=labels, y=[max(getattr(each.run, part), 0.0) for each in comparison.rows])
            for name, part in parts.items()
        ),
        x_label="batch on devices",
        y_label="epoch",
        y_show="duration",
    )


def _which(each: Compared) -> tuple[int, int]:
    return each.batch_size, each.run.cell.n_devices


def _where(result: ScalingResult) -> str:
    backends = ", ".join(dict.fromkeys(run.backend for run in result.runs if run.cell.n_devices > 1))
    device = result.runs[0].device if result.runs else result.experiment.settings.device
    return f"{device} with {backends}" if backends else device
