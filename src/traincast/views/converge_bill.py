"""What a run has taken and cost by its log's clock, beside what was forecast: of `traincast converge`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traincast.report.chart import Chart, Series
from traincast.report.table import Column, Row, Table
from traincast.units import show_duration, show_percent, show_ratio, show_usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.curves.status.status import Status

_MOST_DOTS = 200


def bill_table(run: Status, name: str) -> Table | None:
    """Of a whole run its bill; else what it has taken so far. None where the log has no clock."""
    if run.spent is None:
        return None
    from traincast.curves.status.alarms import one_of
    from traincast.logs.counting import counted

    spent = run.spent
    step_s = None if run.pace is None else run.pace.step_s
    share = spent.before_s / spent.total_s if spent.before_s else 0.0
    estimated = f", {show_percent(share)} of it estimated" if share else ""
    predicted_s = None if run.expected_step_s is None else spent.n_steps * run.expected_step_s
    rows = [
        _row(one_of(run.unit), run.expected_step_s, step_s),
        _row(f"{counted(spent.n_steps, run.unit)}{estimated}", predicted_s, spent.total_s),
    ]
    if run.spent_usd is not None:
        usd_per_s = run.spent_usd / spent.total_s if spent.total_s else 0.0
        predicted_usd = None if predicted_s is None else predicted_s * usd_per_s
        rows.append(_row("cost", predicted_usd, run.spent_usd, show_usd))
    headers = ("", "predicted", "measured", "predicted/measured")
    kept = [0, 2] if run.expected_step_s is None else [0, 1, 2, 3]
    title = "Its cost" if run.is_over else "So far"
    return Table(
        title=f"{name}: {title[0].lower()}{title[1:]}" if name else title,
        columns=tuple(Column(key=headers[place] or "what", header=headers[place]) for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
    )


def _row(
    what: str, predicted: float | None, measured: float | None, show: Callable[[float], str] = show_duration
) -> Row:
    ratio = show_ratio(predicted / measured) if predicted is not None and measured else None
    return what, None if predicted is None else show(predicted), None if measured is None else show(measured), ratio


def clock_chart(run: Status, name: str) -> Chart | None:
    """The clock of the run beside what was forecast; None where one of them is not known."""
    timed = [one for one in run.log.series if one.seconds is not None and np.isfinite(one.seconds).any()]
    if run.expected_step_s is None or run.spent is None or not timed:
        return None
    clock = max(timed, key=len)
    assert clock.seconds is not None
    is_timed = np.isfinite(clock.seconds)
    stride = max(1, int(is_timed.sum()) // _MOST_DOTS)
    steps, seconds = clock.steps[is_timed][::stride], clock.seconds[is_timed][::stride] + run.spent.before_s
    begin = run.step - run.spent.n_steps
    return Chart(
        title=f"Time of {name}: predicted and measured",
        kind="line",
        series=(
            Series(name="predicted", x=[begin, run.step], y=[0.0, run.spent.n_steps * run.expected_step_s]),
            Series(name="measured", x=steps.tolist(), y=seconds.tolist(), is_dots=True),
        ),
        x_label=run.unit,
        y_label="time",
        x_show="integer",
        y_show="duration",
    )
