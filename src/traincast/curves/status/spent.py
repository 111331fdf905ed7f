"""What a run has taken so far: by the clock of its log, with the steps that were done before that clock began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.curves.status.arrival import Speed
from traincast.curves.status.pace import Pace, clock_of
from traincast.logs.counting import count, counted
from traincast.logs.log import Log, Series
from traincast.units import show_duration

_BEGINS = 0.5  # of a step: a clock that shows less at its first row began with that row
_WHOLE = 0.5  # of what the steps before the first row take: a clock that shows more there has counted them
_MOST = 0.5  # of the time so far
_ONE_ROW = 1.5  # times the steps between two rows: what lies further ahead of the first row was logged elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time so far, standing still included, and how much of the run is in it."""

    total_s: float
    n_steps: float
    before_s: float = 0.0  # of the total: what came before the first row, at the pace of the others
    remark: str | None = None


def spent_so_far(log: Log, pace: Pace | None, step: float) -> Spent | None:
    """Up to `step`, the last one of the run; None where the log has no clock.

    A clock of dates begins with the first row, after the steps that this row tells of. They are added at the pace that
    was measured where they are one logging interval. A log that begins later has its beginning elsewhere: it is not
    guessed, and not counted.
    """
    clock = clock_of(log)
    if clock is None:
        return None
    first_step, first_s, last_s = _ends(log)
    if pace is None:
        return Spent(total_s=last_s, n_steps=step)
    before_s = first_step * pace.step_s
    if first_step == 0 or first_s >= _WHOLE * before_s:
        return Spent(total_s=last_s, n_steps=step, remark=_late_start(log, first_step, first_s, before_s, last_s))
    if first_step > _ONE_ROW * _stride(clock):
        where = f"{log.unit} {count(first_step, log.unit)}"
        remark = f"The log begins at {where}: the time before that is not included."
        return Spent(total_s=last_s, n_steps=step - first_step, remark=remark)
    if first_s >= _BEGINS * pace.step_s:
        return Spent(total_s=last_s, n_steps=step)
    steps = counted(first_step, log.unit)
    remark = (
        f"The log's clock begins with its first row: the time so far counts the {steps} up to there as "
        f"{show_duration(before_s)}, at the pace of the later ones."
    )
    return Spent(total_s=last_s + before_s, n_steps=step, before_s=before_s, remark=remark)


def _late_start(log: Log, first_step: float, first_s: float, before_s: float, last_s: float) -> str | None:
    """Most of the time is over at the first row: a long start, or a clock that began before the run."""
    if first_s - before_s <= _MOST * last_s:
        return None
    where = f"{log.unit} {count(first_step, log.unit)}"
    return (
        f"The log's clock shows {show_duration(first_s)} at its first row, {where}: all of it is counted as time "
        "of the run, which is too much if the clock started earlier."
    )


def about_price(log: Log, speed: Speed | None, total_steps: float | None) -> tuple[str, ...]:
    """Of a run with a price: which costs are not known, and why."""
    clock = clock_of(log)
    timed = "its log has no clock" if clock is None else "fewer than three rows of its log have a time"
    if speed is None:
        return (f"There is a price but no cost: {timed}, and no time per step is given.",)
    found = []
    if clock is None:
        found.append(f"There is no cost so far: {timed}.")
    if total_steps is None:
        found.append("There is no cost until the end: the length of the run is not known.")
    return tuple(found)


def _ends(log: Log) -> tuple[float, float, float]:
    """The first step with a time, that time, and the last time there is; of rows that are not finite too."""
    starts, ends = [], []
    for one in log.series:
        if one.seconds is None:
            continue
        rows = np.flatnonzero(np.isfinite(one.seconds))
        if len(rows):
            starts.append((float(one.steps[rows[0]]), float(one.seconds[rows[0]])))
            ends.append(float(one.seconds[rows].max()))
        if one.divergence is not None and one.divergence.last_s is not None:
            ends.append(one.divergence.last_s)
    return *min(starts), max(ends)


def _stride(clock: Series) -> float:
    """Steps from one row to the next, usually."""
    return float(np.median(np.diff(clock.steps))) if len(clock) > 1 else float(clock.steps[0])
