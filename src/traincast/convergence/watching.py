"""A run at one moment: how far it is, when it ends, when it is good enough, and what should make one look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from traincast.convergence.alarms import learning_alarms, silence_alarms, smoothed, speed_alarms
from traincast.convergence.answer import Arrival, Range, Speed, arrival, seconds_to_end
from traincast.convergence.asked import Asked, about, curve_for, length_for, series_for, target_for
from traincast.convergence.curves.curve import Curve
from traincast.convergence.curves.points import FEWEST
from traincast.convergence.from_loss import relation_for
from traincast.convergence.logs.log import Log, Series
from traincast.convergence.pace import Pace, pace_of

_S_PER_H = 3600.0
_COUNTS_FROM_0 = 100  # steps: from here on a log that ends one below its length is over


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Status:
    """What is known now. Times and costs that are left are from the last row on."""

    log: Log
    series: Series
    step: float  # the last one of any series
    total_steps: float | None
    value: float  # the series, smoothed
    curve: Curve | None
    pace: Pace | None
    speed: Speed | None
    slower: float | None  # than expected
    end: Range | None  # the value at the end of the run
    left_s: Range | None
    left_usd: Range | None
    arrival: Arrival | None
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]  # what the log's reader and the fit did
    spent_s: float | None = None  # so far, by the log's clock, standing still included
    spent_usd: float | None = None
    expected_step_s: float | None = None  # as forecast, before the run
    silent_s: float = 0.0  # how long ago the last row was written

    @property
    def progress(self) -> float | None:
        return None if self.total_steps is None else min(self.step / self.total_steps, 1.0)

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
        total = self.total_steps
        if total is None:
            return False
        may_count_from_0 = self.unit == "step" and total >= _COUNTS_FROM_0
        if self.step >= (total - 1 if may_count_from_0 else total):
            return True
        rows = max((one.steps for one in self.log.series), key=len)
        stride = float(np.median(np.diff(rows))) if len(rows) > 2 else 0.0
        return self.step + stride >= total and bool(silence_alarms(self.pace, self.silent_s))

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
            "last_value": float(self.series.values[-1]),
            "value": self.value,
            "end": _range(self.end),
            "step_s": None if self.pace is None else self.pace.step_s,
            "downtime_s": None if self.pace is None else self.pace.downtime_s,
            "slower": self.slower,
            "spent_s": self.spent_s,
            "spent_usd": self.spent_usd,
            "expected_step_s": self.expected_step_s,
            "left_s": _range(self.left_s),
            "left_usd": _range(self.left_usd),
            "arrival": None if self.arrival is None else self.arrival.to_dict(),
            "n_restarts": len(self.log.restarts),
            "warnings": list(self.warnings),
            "remarks": list(self.remarks),
        }

    def _repr_html_(self) -> str:
        from traincast.convergence.status_line import facts_of, place_of
        from traincast.report.notebook import to_notebook

        title = f"{PurePath(self.log.path).name}, {place_of(self)}"
        return to_notebook(title, facts_of(self), notes=(*self.warnings, *self.remarks))


def status_of(log: Log, asked: Asked, *, silent_s: float = 0.0) -> Status:
    """`silent_s` is how long ago the last row was written."""
    found, total = relation_for(log, asked), length_for(log, asked)
    series = series_for(log, asked) if found is None else found.series
    target, about_target = (None, ()) if asked.target is None else target_for(series, asked.target)
    rates = () if log.learning_rate is None else (log.learning_rate,)  # a run whose loss is not finite goes on as well
    step = max(float(one.steps[-1]) for one in (*log.series, *rates))
    if found is not None:
        curve: Curve | None = found.curve(log, asked)
    else:
        curve = curve_for(log, series, asked) if len(series) >= FEWEST else None
    pace = pace_of(log)
    speed = _speed(pace, asked)
    left_s = None if speed is None or total is None else seconds_to_end(step, total, speed)
    spent_s = _spent_s(log)
    usd_per_s = None if asked.usd_per_hour is None else asked.usd_per_hour / _S_PER_H
    return Status(
        log=log,
        series=series,
        step=step,
        total_steps=total,
        value=smoothed(series),
        curve=curve,
        pace=pace,
        speed=speed,
        slower=None if pace is None or asked.step_s is None else pace.step_s / asked.step_s,
        end=None if curve is None or total is None else _at(curve, total),
        left_s=left_s,
        left_usd=None if left_s is None or usd_per_s is None else left_s.times(usd_per_s),
        arrival=None if curve is None or target is None else _arrival(curve, target, log, speed, step),
        warnings=(
            *learning_alarms(series, curve, log.unit),
            *speed_alarms(log, pace, asked.step_s),
            *silence_alarms(pace, silent_s),
        ),
        remarks=(*log.remarks, *about(series), *about_target, *(() if curve is None else curve.warnings)),
        spent_s=spent_s,
        spent_usd=None if spent_s is None or usd_per_s is None else spent_s * usd_per_s,
        expected_step_s=asked.step_s,
        silent_s=silent_s,
    )


def _spent_s(log: Log) -> float | None:
    """The latest time in the log; None where it has no clock."""
    clocks = [one.seconds for one in log.series if one.seconds is not None and np.isfinite(one.seconds).any()]
    return max((float(np.nanmax(clock)) for clock in clocks), default=None)


def _speed(pace: Pace | None, asked: Asked) -> Speed | None:
    """By the log's clock; as expected where it has none, or where that is what was asked for."""
    usd_per_s = None if asked.usd_per_hour is None else asked.usd_per_hour / _S_PER_H
    if pace is not None and (asked.prefers_clock or asked.step_s is None):
        return Speed(step_s=pace.step_s, log_sd=pace.log_sd, source="the log's clock", usd_per_s=usd_per_s)
    if asked.step_s is not None:
        return Speed(step_s=asked.step_s, log_sd=asked.step_log_sd, source="what was given", usd_per_s=usd_per_s)
    return None


def _arrival(curve: Curve, target: float, log: Log, speed: Speed | None, step: float) -> Arrival:
    """From the last row of the run on, which may be behind the last row of the series."""
    found = arrival(curve, target, speed=speed, steps_per_epoch=log.steps_per_epoch, unit=log.unit)
    if speed is None or found.from_now_s is None:
        return found
    passed_s = (step - curve.last_step) * speed.step_s
    left = found.from_now_s
    from_now = Range(*(max(value - passed_s, 0.0) for value in (left.p10, left.p50, left.p90)))
    return replace(
        found, from_now_s=from_now, cost_usd=None if speed.usd_per_s is None else from_now.times(speed.usd_per_s)
    )


def _at(curve: Curve, step: float) -> Range:
    low, high = curve.interval(np.array([step]))
    middle = curve.predict(np.array([step]))
    return Range(*(float(np.asarray(values)[0]) for values in (low, middle, high)))


def _range(found: Range | None) -> dict[str, float] | None:
    return None if found is None else {"p10": found.p10, "p50": found.p50, "p90": found.p90}
