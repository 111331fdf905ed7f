"""A run at one moment: how far it is, when it ends, when it is good enough, and what should make one look."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.curves.curve import Curve
from traincast.curves.from_loss import relation_for
from traincast.curves.log_question import (
    LogQuestion,
    about,
    about_length,
    about_like,
    curve_for,
    length_for,
    series_for,
    target_for,
)
from traincast.curves.points import FEWEST
from traincast.curves.status.alarms import learning_alarms, silence_alarms, speed_alarms
from traincast.curves.status.arrival import Arrival, Speed, arrival, never, seconds_to_end
from traincast.curves.status.pace import Pace, pace_of
from traincast.curves.status.settled import NOTHING_SETTLED, Settled, is_at_end, settled_in, smoothed
from traincast.curves.status.spent import Spent, about_price, spent_so_far
from traincast.estimate import Estimate
from traincast.logs.log import Divergence, Log, Series

if TYPE_CHECKING:
    from traincast.curves.status.at_batch import AtBatch

_S_PER_H = 3600.0
_LOST = 3  # rows that are not finite: one may be a step that was skipped


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Status:
    """What is known now. Times and costs that are left are from the last row on."""

    log: Log
    series: Series
    step: float  # the last one of any series
    total_steps: float | None
    value: float  # the series, smoothed; not finite where it has diverged
    curve: Curve | None
    pace: Pace | None
    speed: Speed | None
    slower: float | None  # than expected
    forecast_end: Estimate | None  # the value at the end of the run, by the curve
    left_s: Estimate | None
    left_usd: Estimate | None
    arrival: Arrival | None
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]  # what the log's reader and the fit did
    settled: Settled = NOTHING_SETTLED
    logged: Series | None = None  # beside a series that is told from a loss: what the run has evaluated itself
    logged_value: float | None = None  # the last of that, if it is recent
    spent: Spent | None = None  # so far, by the log's clock
    spent_usd: float | None = None
    expected_step_s: float | None = None  # as forecast, before the run
    silent_s: float = 0.0  # how long ago the last row was written
    at_batch: AtBatch | None = None  # when the target is reached at another batch size, where that is asked

    @property
    def progress(self) -> float | None:
        return None if self.total_steps is None else min(self.step / self.total_steps, 1.0)

    @property
    def divergence(self) -> Divergence | None:
        """Where the values stopped being finite."""
        return self.settled.divergence

    @property
    def is_lost(self) -> bool:
        """Diverged for several rows, or silent since: it does not come back by itself."""
        found = self.divergence
        return found is not None and (found.n_rows >= _LOST or bool(silence_alarms(self.pace, self.silent_s)))

    @property
    def last_value(self) -> float:
        """As logged; NaN where it is not finite any more."""
        if self.series.divergence is not None:
            return math.nan
        return float(self.series.values[-1]) if self.logged_value is None else self.logged_value

    @property
    def end(self) -> Estimate | None:
        """The value at the end of the run: by the curve; of a run that is over what it has logged last.

        None where nobody knows: without a length, and after a divergence.
        """
        if self.divergence is not None:
            return None
        return Estimate(*[self.last_value] * 3) if self.is_over else self.forecast_end

    @property
    def spent_s(self) -> float | None:
        """So far, by the log's clock, standing still included."""
        return None if self.spent is None else self.spent.total_s

    @property
    def unit(self) -> str:
        """What the log counts: "step" or "epoch". Whatever is called a step here is one of these."""
        return self.log.unit

    @property
    def epochs(self) -> float | None:
        if self.unit == "epoch":
            return self.step
        return None if not self.log.steps_per_epoch else self.step / self.log.steps_per_epoch

    @property
    def is_over(self) -> bool:
        """At the last step; or where the log has been silent for long and its next row would lie behind the end."""
        return _is_over(self.log, self.total_steps, self.pace, self.silent_s)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "path": self.log.path,
            "unit": self.unit,
            "step": self.step,
            "total_steps": self.total_steps,
            "progress": self.progress,
            "epochs": self.epochs,
            "is_over": self.is_over,
            "series": self.series.name,
            "metric": self.series.metric,
            "split": self.series.split,
            "n_points": len(self.series),
            "last_value": self.last_value,
            "value": self.value,
            "end": _range(self.end),
            "diverged_step": None if self.divergence is None else self.divergence.first_step,
            "step_s": None if self.pace is None else self.pace.step_s,
            "downtime_s": None if self.pace is None else self.pace.downtime_s,
            "slower": self.slower,
            "spent_s": self.spent_s,
            "spent_before_first_row_s": None if self.spent is None else self.spent.before_s,
            "spent_steps": None if self.spent is None else self.spent.n_steps,
            "spent_usd": self.spent_usd,
            "expected_step_s": self.expected_step_s,
            "left_s": _range(self.left_s),
            "left_usd": _range(self.left_usd),
            "arrival": None if self.arrival is None else self.arrival.to_dict(),
            "n_restarts": len(self.log.restarts),
            "warnings": list(self.warnings),
            "remarks": list(self.remarks),
            "at_batch": None if self.at_batch is None else self.at_batch.to_dict(),
        }

    def _repr_html_(self) -> str:
        from traincast.curves.status.status_line import facts_of, place_of
        from traincast.report.notebook import to_notebook

        title = f"{PurePath(self.log.path).name}, {place_of(self)}"
        return to_notebook(title, facts_of(self), notes=(*self.warnings, *self.remarks))


def asked_series(log: Log, asked: LogQuestion) -> Series:
    """What is asked for, as logged or as it follows from a loss; raises where the log has neither."""
    found = relation_for(log, asked)
    return series_for(log, asked) if found is None else found.series


def status_of(log: Log, asked: LogQuestion, *, silent_s: float = 0.0) -> Status:
    """`silent_s` is how long ago the last row was written."""
    found, total = relation_for(log, asked), length_for(log, asked)
    series = series_for(log, asked) if found is None else found.series
    target, about_target = (None, ()) if asked.target is None else target_for(series, asked.target)
    logged, newest = (None, None) if found is None else (found.logged, found.newest)
    settled, step = settled_in(log, series, target, total, logged), log.last_step
    waits = about_like(log, asked)
    curve: Curve | None = None
    if not waits and found is not None:
        curve = found.curve(log, asked)
    elif not waits and len(series) >= FEWEST:
        curve = curve_for(log, series, asked)
    pace = pace_of(log)
    speed = _speed(pace, asked)
    left_s = None if speed is None or total is None else seconds_to_end(step, total, speed)
    spent = spent_so_far(log, pace, step)
    usd_per_s = None if asked.usd_per_hour is None else asked.usd_per_hour / _S_PER_H
    return Status(
        log=log,
        series=series,
        step=step,
        total_steps=total,
        value=math.nan if series.divergence is not None else smoothed(series) if newest is None else newest,
        curve=curve,
        pace=pace,
        speed=speed,
        slower=None if pace is None or asked.step_s is None else pace.step_s / asked.step_s,
        forecast_end=None if curve is None or total is None else _at(curve, total),
        left_s=left_s,
        left_usd=None if left_s is None or usd_per_s is None else left_s.times(usd_per_s),
        arrival=None if target is None else _arrival(curve, target, log, speed, settled),
        warnings=(
            *learning_alarms(series, curve, settled, log.unit),
            *speed_alarms(log, pace, asked.step_s),
            *([] if _is_over(log, total, pace, silent_s) else silence_alarms(pace, silent_s)),
        ),
        remarks=(
            *log.remarks,
            *about(log, series, asked),
            *about_target,
            *about_length(log, asked),
            *waits,
            *(() if usd_per_s is None else about_price(log, speed, total)),
            *((spent.remark,) if spent is not None and spent.remark is not None else ()),
            *(() if curve is None or settled.divergence is not None else curve.warnings),
        ),
        settled=settled,
        logged=logged,
        logged_value=newest,
        spent=spent,
        spent_usd=None if spent is None or usd_per_s is None else spent.total_s * usd_per_s,
        expected_step_s=asked.step_s,
        silent_s=silent_s,
    )


def _is_over(log: Log, total_steps: float | None, pace: Pace | None, silent_s: float) -> bool:
    if total_steps is None:
        return False
    if is_at_end(log, total_steps):
        return True
    rows = max((one.steps for one in log.series), key=len)
    stride = float(np.median(np.diff(rows))) if len(rows) > 2 else 0.0
    return log.last_step + stride >= total_steps and bool(silence_alarms(pace, silent_s))


def _speed(pace: Pace | None, asked: LogQuestion) -> Speed | None:
    """By the log's clock; as expected where it has none, or where that is what was asked for."""
    usd_per_s = None if asked.usd_per_hour is None else asked.usd_per_hour / _S_PER_H
    if pace is not None and (asked.prefers_clock or asked.step_s is None):
        return Speed(step_s=pace.step_s, log_sd=pace.log_sd, source="the log's clock", usd_per_s=usd_per_s)
    if asked.step_s is not None:
        return Speed(step_s=asked.step_s, log_sd=asked.step_log_sd, source="what was given", usd_per_s=usd_per_s)
    return None


def _arrival(curve: Curve | None, target: float, log: Log, speed: Speed | None, settled: Settled) -> Arrival | None:
    """From the last row of the run on, which may be behind the last row of the series."""
    if curve is None:
        return None if settled.divergence is None else never(target, log.unit)
    found = arrival(curve, target, speed=speed, settled=settled, steps_per_epoch=log.steps_per_epoch, unit=log.unit)
    if speed is None or found.from_now_s is None:
        return found
    passed_s = (log.last_step - curve.last_step) * speed.step_s
    left = found.from_now_s
    from_now = Estimate(*(max(value - passed_s, 0.0) for value in (left.p10, left.p50, left.p90)))
    return replace(
        found, from_now_s=from_now, cost_usd=None if speed.usd_per_s is None else from_now.times(speed.usd_per_s)
    )


def _at(curve: Curve, step: float) -> Estimate:
    low, high = curve.interval(np.array([step]))
    middle = curve.predict(np.array([step]))
    return Estimate(*(float(np.asarray(values)[0]) for values in (low, middle, high)))


def _range(found: Estimate | None) -> dict[str, float] | None:
    return None if found is None else {"p10": found.p10, "p50": found.p50, "p90": found.p90}
