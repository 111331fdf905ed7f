"""What `traincast converge` shows: each run's curve with its band, where it ends, and when it is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traincast.curves.from_loss import METRIC
from traincast.logs.counting import count
from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table
from traincast.units import show_duration, show_percent, show_usd, shown_or_never
from traincast.views.converge_bill import bill_table, clock_chart

if TYPE_CHECKING:
    from traincast.curves.curve import Curve
    from traincast.curves.status.arrival import Arrival
    from traincast.curves.status.status import Status
    from traincast.estimate import Estimate

_MOST_DOTS = 400
_N_PLACES = 160
_WAYS = {  # families of curves
    "auto": "the run continues with the same data, batch and settings. p10-p90 covers the curves that fit its "
    "points and how far other runs deviated from such curves.",
    "like": "it continues like the runs it is compared with; p10-p90 covers how these differ.",
    "optimus": "it follows Optimus' law, 1/(b0 k + b1) + b2; p10-p90 covers how well its points determine it.",
}
_WIDE = 4.0  # times: a curve that has fallen further is read on a logarithmic axis


def document_of(runs: Sequence[Status]) -> Document:
    """A table of the runs and a chart of each."""
    names = [Path(run.log.path).name for run in runs]
    is_over = all(run.is_over for run in runs)
    which = names[0] if len(runs) == 1 else f"{len(runs)} runs"
    title = f"How {which} ended" if is_over else f"Where {which} will end"
    if all(run.divergence is not None for run in runs):
        title = f"{which} {'has' if len(runs) == 1 else 'have'} diverged"
    titles = names if len(runs) > 1 else [""]
    bills = [bill_table(run, name) for run, name in zip(runs, titles, strict=True)]
    clocks = [clock_chart(run, name) for run, name in zip(runs, names, strict=True)]
    notes = [note for run, name in zip(runs, titles, strict=True) for note in _notes(run, name)]
    return Document(
        title=title,
        subtitle=", ".join(_subtitle(run) for run in runs[:1]) if len(runs) == 1 else "",
        tables=(
            *(_table(run, name) for run, name in zip(runs, titles, strict=True)),
            *(bill for bill in bills if bill is not None),
        ),
        charts=(
            *(_chart(run, name) for name, run in zip(names, runs, strict=True)),
            *(clock for clock in clocks if clock is not None),
        ),
        notes=tuple(notes),
    )


def _subtitle(run: Status) -> str:
    length = "" if run.total_steps is None else f" of {count(run.total_steps, run.unit)}"
    points = f"{len(run.series):,} points to {run.unit} {count(run.step, run.unit)}{length}"
    return f"{run.series.split} {run.series.metric}, {points}"


def _table(run: Status, name: str) -> Table:
    rows: list[Row] = [("at the end" if run.is_over else "now", _plain(run.last_value), None, None)]
    if run.end is not None and not run.is_over:
        rows.append(("at the end of the run", *_cells(run.end, _plain)))
    elif run.left_s is not None and not run.is_over:
        rows.append(("at the end of the run", "not finite", None, None))
    if run.left_s is not None and not run.is_over:
        rows.append(("time until then", *_cells(run.left_s, show_duration)))
    if run.left_usd is not None and not run.is_over:
        rows.append(("cost until then", *_cells(run.left_usd, show_usd)))
    there = run.arrival
    if there is not None:
        rows.append((f"probability of {there.target:g}", show_percent(there.probability), None, None))
        rows.append((f"{run.unit} that reaches {there.target:g}", *_cells(there.steps, _step)))
        if there.epochs is not None and run.unit != "epoch":
            rows.append((f"epochs until {there.target:g}", *_cells(there.epochs, _step)))
        if there.from_now_s is not None and not run.is_over:
            rows.append((f"time until {there.target:g}", *_cells(there.from_now_s, show_duration)))
        if there.cost_usd is not None and not run.is_over:
            rows.append((f"cost until {there.target:g}", *_cells(there.cost_usd, show_usd)))
    other = run.at_batch
    if other is not None:
        batch = f"{other.target:g} at batch {other.batch_size:,.0f}"
        for words, found in ((f"step that reaches {batch}", other.steps), (f"epochs until {batch}", other.epochs)):
            rows += [] if found is None else [(words, *_cells(found, _step))]
    columns = [Column(key=key, header=key) for key in ("what", "p50", "p10", "p90")]
    return Table(title=name, columns=(Column(key="what", header=""), *columns[1:]), rows=tuple(rows))


def _cells(found: Estimate, show: Callable[[float], str]) -> tuple[str, str, str]:
    return shown_or_never(found.p50, show), shown_or_never(found.p10, show), shown_or_never(found.p90, show)


def _plain(value: float) -> str:
    return "not finite" if np.isnan(value) else f"{value:.4g}"


def _step(value: float) -> str:
    return count(value, "step") if value >= 100 else f"{value:.1f}"


def _chart(run: Status, name: str) -> Chart:
    curve, series = run.curve, run.series
    assert curve is not None  # `converge` refuses logs with too few points
    end = _drawn_to(run, curve)
    places = np.linspace(max(curve.first_step, 0.01 * end), end, _N_PLACES)
    low, high = curve.interval(places)
    stride = max(1, len(series) // _MOST_DOTS)
    dots = "logged" if series.kind != METRIC else METRIC
    beside = () if run.logged is None else (run.logged,)
    lines = [ReferenceLine(value=run.arrival.target, label="target")] if run.arrival is not None else []
    if run.divergence is not None:
        lines.append(ReferenceLine(value=run.divergence.first_step, label="diverged", axis="x"))
    return Chart(
        title=f"{series.split} {series.metric} of {name}",
        kind="line",
        series=(
            Series(
                name="forecast, p10 to p90",
                x=places.tolist(),
                y=np.asarray(curve.predict(places)).tolist(),
                low=np.asarray(low).tolist(),
                high=np.asarray(high).tolist(),
            ),
            Series(name=dots, x=series.steps[::stride].tolist(), y=series.values[::stride].tolist(), is_dots=True),
            *(Series(name="logged", x=one.steps.tolist(), y=one.values.tolist(), is_dots=True) for one in beside),
        ),
        x_label=run.unit,
        y_label=series.metric,
        log_y=_is_wide(run),
        reference_lines=(*lines, ReferenceLine(value=run.step, label="end" if run.is_over else "now", axis="x")),
    )


def _is_wide(run: Status) -> bool:
    """Whether it has fallen far; what rises, such as an accuracy, starts near nothing and is read as it is."""
    values, curve = run.series.values, run.curve
    is_rising = curve is not None and curve.is_rising
    return not is_rising and bool(values.min() > 0 and values.max() > _WIDE * values.min())


def _missed(run: Status, there: Arrival) -> str:
    """That the target is not reached, and how sure that is."""
    if run.divergence is not None:
        return f"it will not reach {there.target:g}: it has diverged."
    if run.settled.is_missed:
        return f"it did not reach {there.target:g}."
    when = "in this run" if run.total_steps is not None else "at all"
    word = "has probably not reached" if run.is_over else "will probably not reach"
    return f"it {word} {there.target:g} {when}: the chance is {show_percent(there.probability)}."


def _drawn_to(run: Status, curve: Curve) -> float:
    """The end of the run; without one twice as far, or where its target is; where it has diverged, until then."""
    if run.divergence is not None:
        return curve.last_step
    if curve.total_steps is not None:
        return curve.total_steps
    there = math.inf if run.arrival is None else run.arrival.steps.p50
    further = min(1.1 * there, 10.0 * curve.last_step) if math.isfinite(there) else 0.0
    return max(2.0 * curve.last_step, further)


def _assumed(run: Status) -> list[str]:
    """What the rest of the run is taken from; one that is over has none."""
    if run.curve is None or run.is_over or run.divergence is not None:
        return []
    return [f"Assumed: {_WAYS[run.curve.family.split(',')[0]]}"]


def _notes(run: Status, name: str) -> list[str]:
    from traincast.curves.status.alarms import one_of

    notes = []
    if run.arrival is not None and run.arrival.probability < 0.5:
        notes.append(_missed(run, run.arrival))
    if run.speed is not None:
        notes.append(f"{one_of(run.unit)} takes {show_duration(run.speed.step_s)} by {run.speed.source}.")
    if run.pace is not None and run.pace.n_pauses:
        notes.append(f"{show_duration(run.pace.downtime_s)} of idle time are not included.")
    told = [*notes, *run.warnings, *run.remarks, *_assumed(run)]
    return [f"{name}: {note}" if name else f"{note[0].upper()}{note[1:]}" for note in told]
