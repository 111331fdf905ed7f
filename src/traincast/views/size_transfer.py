"""What `traincast transfer` shows: parameters and curve with intervals, how wrong that is here, time by workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from traincast.curves.size_transfer.charts import curve_chart, error_chart, parameter_chart
from traincast.curves.size_transfer.held_out import Law, law_of
from traincast.curves.size_transfer.transferred import QUANTITIES
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table, columns_of
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.curves.size_transfer.study import Study
    from traincast.curves.size_transfer.workers_curve import WorkersCurve

_SHOWN_STEPS = 6
_LEVEL = 0.05
_HELD_OUT = (*QUANTITIES, "curve", "curve, log steps")


def document_of(study: Study, *, has_charts: bool = True) -> Document:
    """Charts ask for the whole range of sizes, which takes a second: leave them out where nobody looks."""
    asked = study.predicted
    what = asked.sized
    kind = f"family '{asked.family}', " if asked.family else ""
    n_own = len(study.fitted)
    compared = f"; compared with {n_own} run{'s' * (n_own > 1)} of the model itself" if n_own else ""
    tables = [_parameters(study), _curve(study)]
    tables += [_held_out(study)] if study.held_out else []
    tables += [_hardware(study)] if asked.hardware else []
    tables += [_workers(study.workers), _by_workers(study.workers)] if study.workers else []
    return Document(
        title=f"The learning curve of {what} before it runs",
        subtitle=f"{kind}from {show_things(asked.n_rows, 'run')} of {show_things(asked.n_models, 'model')}{compared}",
        tables=tuple(tables),
        charts=tuple(_charts(study)) if has_charts else (),
        notes=(*_notes(study), *study.warnings),
    )


def _parameters(study: Study) -> Table:
    rows: list[Row] = []
    for name, one in study.predicted.estimates.items():
        fitted, theirs = study.mean(name), study.ridge.get(name)
        own = (_digits(fitted), _error(one.value, fitted)) if study.fitted else ()
        of_ridge = (_digits(theirs), *((_error(theirs, fitted),) if study.fitted else ()))
        rows.append((name, *(_digits(value) for value in (one.value, one.low, one.high)), *own, *of_ridge))
    columns = [Column(key="parameter", header=""), *_estimate_columns(""), Column(key="ridge", header="plain ridge")]
    if study.fitted:
        columns[4:4] = [*columns_of("fitted, error_fraction: error")]
        columns.append(Column(key="ridge_error_fraction", header="its error", show="percent"))
    note = "loss = 1/(b0 k + b1) + b2" + ("; epochs are those to the target." if "epochs" in study.ridge else ".")
    return Table(title="Parameters", columns=tuple(columns), rows=tuple(rows), notes=(note,))


def _estimate_columns(prefix: str) -> list[Column]:
    named = (("value", "predicted"), ("p10", "p10"), ("p90", "p90"))
    return [Column(key=f"{prefix}{key}", header=header) for key, header in named]


def _digits(value: float | None) -> str | None:
    """Three of them, however small the value is: parameters are of all sizes."""
    return None if value is None else f"{value:.3g}"


def _error(found: float | None, real: float | None) -> float | None:
    return None if found is None or not real or real < 1e-6 else found / real - 1


def _curve(study: Study) -> Table:
    curve, own = study.predicted.curve, _own_law(study)
    steps = np.geomspace(max(curve.last_step / 100, 1.0), curve.last_step, _SHOWN_STEPS)
    columns = [Column(key=study.unit, header=study.unit, show="integer"), *_estimate_columns("loss_")]
    losses = [curve.predict(steps), *curve.interval(steps)]
    if own is not None:
        columns.append(Column(key="loss_fitted", header="fitted"))
        losses.append(own(steps))
    rows = tuple(
        (step, *(_digits(float(np.asarray(each)[place])) for each in losses))
        for place, step in enumerate(steps.tolist())
    )
    return Table(title="Loss", columns=tuple(columns), rows=rows)


def _own_law(study: Study) -> Law | None:
    """The first of the model's own runs whose fit can be used."""
    fit = next(iter(study.fitted), None)
    return None if fit is None else law_of(fit.b0, fit.b1, fit.b2)


def _held_out(study: Study) -> Table:
    names = [name for name in _HELD_OUT if any(name in each.errors for each in study.held_out)]
    columns = [Column(key="model", header="left out", show="name")]
    for name in names:
        key = name.replace(", ", "_").replace(" ", "_")
        columns.append(Column(key=f"{key}_error_fraction", header=name, show="percent"))
        columns.append(Column(key=f"{key}_ridge_error_fraction", header="ridge", show="percent"))
    rows: list[Row] = []
    for each in study.held_out:
        errors = [each.errors.get(name) for name in names]
        cells = [cell for one in errors for cell in ((None, None) if one is None else (one.ours, one.ridge))]
        rows.append((each.model, *cells))
    if len(rows) > 1:
        means = [[row[place] for row in rows if row[place] is not None] for place in range(1, len(columns))]
        rows.append(("mean", *(float(np.mean(found)) if found else None for found in means)))
    n_inside, n_values = (sum(getattr(each, name) for each in study.held_out) for name in ("n_inside", "n_values"))
    notes = (f"Mean absolute errors; p10 to p90 holds {n_inside} of {n_values} values.",)
    return Table(title="Each model predicted from the others", columns=tuple(columns), rows=tuple(rows), notes=notes)


def _hardware(study: Study) -> Table:
    columns = columns_of(
        "quantity:, n_rows: runs, n_models: models, n_gpus: kinds, spread_fraction: highest over lowest, "
        "p_value: p as ratio"
    )
    tests = study.predicted.hardware
    rows = tuple(tuple(getattr(test, column.key) for column in columns) for test in tests)
    if all(test.least_p_value > _LEVEL for test in tests):
        told = "Too few runs of one model on several kinds to tell"
    else:
        rejected = ", ".join(test.quantity for test in tests if test.is_rejected)
        told = f"More than chance explains of {rejected}" if rejected else "No difference beyond chance"
    return Table(title="Does the hardware matter?", columns=columns, rows=rows, notes=(f"{told}: runs are pooled.",))


def _workers(times: Sequence[WorkersCurve]) -> Table:
    columns = columns_of(
        "n_servers: servers, best_n_workers: best workers as integer, time_s: time to target, "
        "low_s: p10, high_s: p90, enough_n_workers: workers within 10 % as integer"
    )
    rows = []
    for curve in times:
        best = int(np.argmin(curve.time_s))
        spans = (float(each[best]) for each in (curve.time_s, curve.low_s, curve.high_s))
        rows.append((curve.n_servers, curve.best_n_workers, *spans, curve.enough_n_workers))
    return Table(title="Time to the target by workers", columns=columns, rows=tuple(rows))


def _by_workers(times: Sequence[WorkersCurve]) -> Table:
    """The whole curves."""
    columns = [Column(key="n_workers", header="workers", show="integer")]
    for curve in times:
        columns.append(
            Column(
                key=f"time_{curve.n_servers}_servers_s",
                header=f"{show_things(curve.n_servers, 'server')}",
                show="duration",
            )
        )
        columns += [
            Column(key=f"{end}_{curve.n_servers}_servers_s", header=end, show="duration") for end in ("p10", "p90")
        ]
    rows = tuple(
        (n_workers, *(float(each[place]) for curve in times for each in (curve.time_s, curve.low_s, curve.high_s)))
        for place, n_workers in enumerate(times[0].n_workers.tolist())
    )
    return Table(title="Time to the target for every number of workers", columns=tuple(columns), rows=rows)


def _charts(study: Study) -> list[Chart]:
    from traincast.curves.size_transfer.study import over_sizes

    own, others = _own_law(study), {"plain ridge": study.ridge_curve}
    logged = {
        f"logged, {run.fit.model}": (run.loss.steps, run.loss.values) for run in study.own[:1] if run.loss is not None
    }
    fitted = {} if own is None else {"fitted": own}
    charts = [curve_chart(study.predicted, {**fitted, **others}, logged=logged, unit=study.unit)]
    if own is not None:
        charts.append(error_chart(study.predicted, own, others, unit=study.unit))
    fits = [run.fit for run in (*study.runs, *study.own) if not run.fit.is_degenerate]
    sizes = over_sizes(study)
    charts += [parameter_chart(fits, sizes, name) for name in QUANTITIES if name in study.predicted.estimates]
    if study.workers:
        charts.append(workers_chart(study.workers))
    return charts


def workers_chart(curves: Sequence[WorkersCurve], *, title: str = "Time to accuracy by workers") -> Chart:
    """All curves with their bands on one pair of axes."""
    series = tuple(
        Series(
            name=f"{curve.n_servers} servers, p10 to p90",
            x=curve.n_workers.tolist(),
            y=curve.time_s.tolist(),
            low=curve.low_s.tolist(),
            high=curve.high_s.tolist(),
        )
        for curve in curves
    )
    return Chart(
        title=title,
        kind="line",
        series=series,
        x_label="workers",
        y_label="time to accuracy",
        x_show="integer",
        y_show="duration",
        log_y=True,
    )


def _notes(study: Study) -> list[str]:
    if not study.workers:
        return []
    steps = f"{study.steps_per_epoch:,.0f} steps per epoch"
    return [
        f"Time: epochs x {steps} / steps per second; its interval is that of the epochs.",
        f"Speeds: {study.speeds}.",
    ]
