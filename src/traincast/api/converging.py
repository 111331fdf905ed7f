"""Where a run will end: its log, the curve through it, its pace, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from traincast.convergence.curves.curve import Curve
    from traincast.convergence.curves.fit import Metric
    from traincast.convergence.curves.schedule import LearningRate
    from traincast.convergence.logs.log import Log
    from traincast.convergence.watching import Status
    from traincast.forecasting.forecast import Forecast

_P10_TO_P90_SDS = 2.5631
_S_PER_H = 3600.0


def fit_curve(
    steps: ArrayLike,
    losses: ArrayLike,
    family: str = "auto",
    *,
    total_steps: float | None = None,
    learning_rate: LearningRate | None = None,
    metric: Metric | None = None,
) -> Curve:
    """A law through logged losses, or accuracies: `predict`, `interval`, `steps_to`, `interval_to`, `warnings`.

    `family` is "auto" (power laws that know what a falling learning rate does) or "optimus" (1/(b0 k + b1) + b2).
    `learning_rate` is a function of the step, {step: rate from it on}, one rate a logged value, or one a step.
    """
    from traincast.convergence.curves.fit import fit_curve as fit

    return fit(steps, losses, family, total_steps=total_steps, learning_rate=learning_rate, metric=metric)


def converge(
    log: Log | str | Path,
    *,
    metric: str | None = None,
    split: str | None = None,
    target: float | None = None,
    family: str = "auto",
    total_steps: float | None = None,
    n_epochs: float | None = None,
    learning_rate: LearningRate | str | None = None,
    step: Forecast | float | None = None,
    usd_per_hour: float | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Status:
    """Continues a series of a log: the metric that is named, else the validation loss, else the training loss.

    The length of the run is `total_steps`, or `n_epochs` of the log's steps, or what the log says. The pace is that of
    the log's clock, unless `step` gives a forecast, or seconds. `usd_per_hour` is of all devices together.
    """
    from traincast.api.logs import read_log
    from traincast.convergence.asked import Asked, series_for
    from traincast.convergence.curves.points import clean
    from traincast.convergence.logs.log import Log
    from traincast.convergence.watching import status_of

    known = log if isinstance(log, Log) else read_log(log, **dict(reading or {}))
    step_s, step_log_sd, usd = _expected(step, usd_per_hour)
    asked = Asked(
        metric=metric,
        split=split,
        target=target,
        total_steps=total_steps,
        n_epochs=n_epochs,
        learning_rate=learning_rate,
        family=family,
        step_s=step_s,
        step_log_sd=step_log_sd,
        prefers_clock=step is None,
        usd_per_hour=usd,
    )
    series = series_for(known, asked)
    clean(series.steps, series.values)  # too few points are told here: a run that is watched may still write more
    return status_of(known, asked)


def _expected(step: Forecast | float | None, usd_per_hour: float | None) -> tuple[float | None, float, float | None]:
    """Seconds of a step, how sure they are, and the price of an hour."""
    import math

    if step is None or isinstance(step, (int, float)):
        return None if step is None else float(step), 0.0, usd_per_hour
    low, high = step.interval("step_s")
    if usd_per_hour is None and step.cost_usd and step.total_s:
        usd_per_hour = _S_PER_H * step.cost_usd / step.total_s
    return step.step_s, math.log(high / low) / _P10_TO_P90_SDS, usd_per_hour
