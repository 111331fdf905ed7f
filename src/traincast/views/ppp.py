"""What `traincast calibrate --ppp` shows: the PPP with its interval, and what it leaves of every measured step."""

from __future__ import annotations

from traincast.api.ppp import PppFit
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_percent, show_things

_COLUMNS = (
    Column(key="model", header="model", show="name"),
    Column(key="device", header="device", show="name"),
    Column(key="batch_size", header="batch", show="integer"),
    Column(key="mode", header="mode", show="name"),
    Column(key="measured_s", header="measured", show="duration"),
    Column(key="predicted_s", header="at this PPP", show="duration"),
    Column(key="error_fraction", header="residual", show="percent"),
    Column(key="own_ppp", header="PPP of this step alone", show="ratio"),
)


def document_of(found: PppFit) -> Document:
    fitted, rows = found.fitted, found.rows
    interval = fitted.interval
    spread = "an interval needs three steps" if interval is None else f"p10-p90: {interval[0]:.3f} to {interval[1]:.3f}"
    own = fitted.own
    notes = [f"Alone, the steps give {min(own):.3f} to {max(own):.3f}: one number stands for all kernels of a net."]
    if fitted.is_clipped:
        notes.append(
            "The steps are faster than the peaks allow by Paleo's count of flop (Winograd, FFT): 1 is the nearest PPP."
        )
    return Document(
        title=f"Platform percent of peak of {found.path}",
        subtitle=f"method paleo, {show_things(len(rows), 'measured step')}",
        verdict=f"PPP {fitted.ppp:.3f} ({spread}). Mean absolute residual: {show_percent(found.mean_error_fraction)}.",
        tables=(
            Table(
                title="Steps",
                columns=_COLUMNS,
                rows=tuple(tuple(getattr(row, column.key) for column in _COLUMNS) for row in rows),
                notes=("Residual: predicted / measured - 1.",),
            ),
        ),
        charts=(_chart(found),),
        notes=(*notes, f"Use it: traincast forecast MODEL --on DEVICE --batch N --method paleo --ppp {fitted.ppp:.3f}"),
    )


def _chart(found: PppFit) -> Chart:
    labels = [f"{row.model}, {row.device}, {row.batch_size:,}" for row in found.rows]
    return Chart(
        title="Measured steps and those at the fitted PPP",
        kind="bar",
        series=(
            Series(name="measured", x=labels, y=[row.measured_s for row in found.rows]),
            Series(name="predicted", x=labels, y=[row.predicted_s for row in found.rows]),
        ),
        x_label="",
        y_label="step",
        y_show="duration",
    )
