"""What should make one look at a run: it diverges, stands on a plateau, is slow, waits for data, or is silent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.curves.curve import Curve
from traincast.curves.status.pace import Pace
from traincast.curves.status.settled import Settled, noise_of
from traincast.logs.counting import count
from traincast.logs.log import Log, Series
from traincast.units import show_duration, show_percent

Floats = NDArray[np.float64]

_FEWEST = 12  # points, before a shape is judged
_MOST = 100_000  # points that are looked at: more tell no more
_RISES = 0.15  # of the best: less may be noise, a larger learning rate, or a validation loss that overfits
_TWICE = 0.9  # of the best: so much needs no second block to be believed
_NOISES = 4.0
_STILL = 0.005  # of the value: what a plateau moves
_TO_COME = 0.02  # of the value: what a run that is worth it may still gain
_SLOWER = 1.15
_WAITS = 0.2
_SILENT = 10.0  # times the usual time between rows
_SILENT_S = 60.0


def learning_alarms(series: Series, curve: Curve | None, settled: Settled, unit: str = "step") -> list[str]:
    """Of the values: that they grow, stopped being finite, or change no more."""
    if settled.divergence is not None:
        since = count(settled.divergence.first_step, unit)
        return [f"Diverged: '{settled.diverged_name}' is not finite since {unit} {since}."]
    alarms: list[str] = []
    if len(series) < _FEWEST:
        return alarms
    sign = -1.0 if series.is_rising else 1.0
    values = series.values[:: 1 + len(series) // _MOST]
    blocks = [float(np.median(part)) for part in np.array_split(sign * values, min(20, len(values) // 3))]
    best, now = min(blocks), blocks[-1]
    lasts, margin = min(blocks[-2:]) - best, max(_RISES * abs(best), _NOISES * noise_of(values))
    if lasts > margin or now - best > max(_TWICE * abs(best), margin):
        word = "falls" if sign < 0 else "rises"
        alarms.append(f"Diverging: '{series.name}' {word}, from {sign * best:.4g} at its best to {sign * now:.4g} now.")
    elif curve is not None and _is_still(values) and not _gains(curve):
        alarms.append(f"Plateau: '{series.name}' stays at {sign * now:.4g}, and is forecast to hardly change.")
    return alarms


def speed_alarms(log: Log, pace: Pace | None, expected_s: float | None) -> list[str]:
    """Of the time: slower than was forecast, or waiting for data."""
    if pace is None:
        return []
    alarms = []
    if expected_s is not None and pace.step_s > _SLOWER * expected_s:
        alarms.append(
            f"Slower than forecast: {one_of(log.unit)} takes {show_duration(pace.step_s)}, "
            f"{pace.step_s / expected_s:.2f} times the expected {show_duration(expected_s)}."
        )
    waits = log.data_wait
    if waits is not None:
        share = float(np.mean(waits.values[-max(3, len(waits) // 5) :])) / pace.step_s
        if share > _WAITS:
            alarms.append(
                f"Input-bound: {show_percent(min(share, 1.0))} of {one_of(log.unit)} is spent waiting for data."
            )
    return alarms


def one_of(unit: str) -> str:
    return "an epoch" if unit == "epoch" else f"a {unit}"


def silence_alarms(pace: Pace | None, silent_s: float) -> list[str]:
    """Of the log itself: nothing was written for long."""
    usual_s = pace.row_s if pace is not None else 0.0
    if silent_s <= max(_SILENT * usual_s, _SILENT_S):
        return []
    usual = f"; rows usually come every {show_duration(usual_s)}" if usual_s else ""
    return [f"Silent: nothing was logged for {show_duration(silent_s)}{usual}."]


def _is_still(values: Floats) -> bool:
    """The last quarter is where the quarter before it was."""
    quarter = max(3, len(values) // 4)
    before, now = np.median(values[-2 * quarter : -quarter]), np.median(values[-quarter:])
    return bool(abs(before - now) < max(_STILL * abs(before), noise_of(values) / np.sqrt(quarter)))


def _gains(curve: Curve) -> bool:
    """Whether the run may still get better, by p10: until its end, or for as many steps as there were."""
    end = np.array([max(curve.total_steps or 2.0 * curve.last_step, curve.last_step)])
    here = curve.predict(curve.last_step)
    best = curve.interval(end)[1 if curve.is_rising else 0]
    return bool(np.abs(best - here).max() > _TO_COME * max(abs(float(np.max(here))), 1e-12))
