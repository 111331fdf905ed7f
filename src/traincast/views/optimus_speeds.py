"""What `traincast scale --optimus SPEEDS` shows: the time to a number of steps over workers, by parameter servers."""

from __future__ import annotations

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.scaling.optimus import TERMS, SpeedCurve, SpeedFit, SpeedModel, speed_chart
from traincast.scaling.optimus_times import OptimusTimes
from traincast.units import show_duration, show_percent, show_things


def document_of(answer: OptimusTimes) -> Document:
    model, fit, curves, n_steps = answer.model, answer.fit, answer.curves, answer.n_steps
    return Document(
        title=f"Time to {n_steps:,} steps by Optimus' speed model",
        subtitle=_subtitle(answer.speeds, model, fit),
        verdict=_verdict(curves, n_steps),
        tables=(_table(curves, n_steps),),
        charts=(_times(curves, n_steps), speed_chart(curves)),
        warnings=() if fit is None else fit.warnings,
        notes=_notes(model, fit),
    )


def _subtitle(speeds: str, model: SpeedModel, fit: SpeedFit | None) -> str:
    mode = "asynchronous" if model.mode == "async" else f"synchronous, batch {model.batch_size:,.0f}"
    return f"{mode}, {'the coefficients of ' if fit is None else 'fitted to '}{speeds}"


def _table(curves: tuple[SpeedCurve, ...], n_steps: int) -> Table:
    columns = [Column(key="n_workers", header="workers", show="integer")]
    for curve in curves:
        p, plural = curve.n_servers, "s" * (curve.n_servers > 1)
        columns.append(Column(key=f"time_{p}_servers_s", header=f"{p} server{plural}", show="duration"))
        columns.append(Column(key=f"steps_per_s_{p}_servers", header="steps/s", show="ratio"))
    rows = []
    for number, n_workers in enumerate(curves[0].n_workers.tolist()):
        speeds = [float(curve.steps_per_s[number]) for curve in curves]
        rows.append((n_workers, *(cell for speed in speeds for cell in (n_steps / speed, speed))))
    return Table(title="By workers and parameter servers", columns=tuple(columns), rows=tuple(rows))


def _times(curves: tuple[SpeedCurve, ...], n_steps: int) -> Chart:
    series = tuple(
        Series(
            name=f"{curve.n_servers} parameter server{'s' * (curve.n_servers > 1)}",
            x=curve.n_workers.tolist(),
            y=(n_steps / curve.steps_per_s).tolist(),
        )
        for curve in curves
    )
    return Chart(
        title=f"Time to {n_steps:,} steps",
        kind="line",
        series=series,
        x_label="workers",
        y_label="time",
        x_show="integer",
        y_show="duration",
    )


def _verdict(curves: tuple[SpeedCurve, ...], n_steps: int) -> str:
    """The fastest number of workers for every number of servers."""
    fastest = "; ".join(
        f"{show_duration(n_steps / float(curve.steps_per_s.max()))} with {show_things(curve.n_servers, 'server')} and "
        f"{show_things(curve.fastest_n_workers, 'worker')}"
        for curve in curves
    )
    return f"Fastest: {fastest}."


def _notes(model: SpeedModel, fit: SpeedFit | None) -> tuple[str, ...]:
    counted = "of all workers together, each on its own mini-batch" if model.mode == "async" else "of the whole job"
    notes = [f"Steps are counted {counted}."]
    terms = ", ".join(f"{name} {value:.3g}" for name, value in zip(TERMS[model.mode], model.theta, strict=True))
    notes.append(f"Coefficients in seconds: {terms}.")
    if fit is not None:
        left_out = fit.leave_one_out_error_fraction
        unseen = "" if left_out is None else f", {show_percent(left_out)} on points left out of the fit"
        notes.append(
            f"Fitted to {fit.n_points} points with a mean error of {show_percent(fit.mean_error_fraction)}{unseen}. "
            "Points are read as synchronous if a batch size is given, else as asynchronous."
        )
    else:
        notes.append(
            "The paper gives its coefficients without batch size and machines: they show shapes, not a forecast."
        )
    return tuple(notes)
