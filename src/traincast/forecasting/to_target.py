"""When a run on other hardware is good enough: the curve of an earlier run, at the pace of a forecast."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.curves.curve import weighted_quantiles
from traincast.curves.status.status import Status
from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.lognormal import FIFTHS_SDS, log_sd_of
from traincast.logs.counting import count

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast

_LEVELS = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTarget:
    """From the first step to the target. Ends of a range are infinite where so many curves never get there."""

    target: float
    metric: str
    log: str
    probability: float  # by the end of the logged run; of one without an end, ever
    updates: Estimate  # of the forecast's batch size
    total_s: Estimate
    cost_usd: Estimate | None
    has_end: bool  # whether the logged run has one
    assumption: str  # how steps of the log became those of the forecast

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def time_to_target(forecast: Forecast, status: Status) -> ToTarget:
    """Steps to the target and seconds of a step vary on their own, so their distributions multiply."""
    there, curve = status.arrival, status.curve
    if there is None or curve is None:
        raise InputError(f"'{status.log.path}' has no curve to a target: give the target.")
    if status.divergence is not None and status.settled.reached_step is None:
        since = f"{status.unit} {count(status.divergence.first_step, status.unit)}"
        raise InputError(f"'{status.log.path}' has diverged at {since}, so it tells of no way to {there.target:g}.")
    updates_each, assumption = _updates_each(forecast, status)
    updates = status.settled.bounded(curve.crossings(there.target)) * updates_each
    low, high = forecast.interval("step_s")
    log_sd = log_sd_of(low, high) if forecast.step_s else 0.0
    paces_s = forecast.step_s * np.exp(np.array(FIFTHS_SDS) * log_sd)
    total_s = _quantiles((updates[:, None] * paces_s).ravel(), np.repeat(curve.weights, len(paces_s)) / len(paces_s))
    price = forecast.question.run_price_usd_per_hour
    return ToTarget(
        target=there.target,
        metric=status.series.metric,
        log=status.log.path,
        probability=there.probability,
        updates=_quantiles(updates, curve.weights),
        total_s=total_s,
        cost_usd=None if price is None else total_s.times(price / 3600),
        has_end=status.total_steps is not None,
        assumption=assumption,
    )


def ends_before(forecast: Forecast, there: ToTarget) -> str | None:
    """A sentence where the run is over before half of the curves are there; one epoch is what nobody asked for."""
    question = forecast.question
    if question.n_samples is None or question.n_epochs == 1:
        return None
    per_epoch = math.ceil(question.n_samples / question.batch_size)
    needed = there.updates.p50 / per_epoch
    if needed <= question.n_epochs:
        return None
    name = f"{there.metric} {there.target:g}"
    if not math.isfinite(needed):
        return f"The run of {question.n_epochs:,} epochs more likely than not never reaches {name}."
    return f"The run of {question.n_epochs:,} epochs is over before {name} is likely: that takes {needed:,.1f} epochs."


def _updates_each(forecast: Forecast, status: Status) -> tuple[float, str]:
    """Updates of the forecast for one step (or epoch) of the log: both see as many samples where that is known."""
    log, question = status.log, forecast.question
    per_epoch = None if question.n_samples is None else math.ceil(question.n_samples / question.batch_size)
    log_per_epoch = 1.0 if log.counts_epochs else log.steps_per_epoch
    if log_per_epoch and per_epoch:
        return per_epoch / log_per_epoch, "as many epochs as the logged run needs"
    if log.counts_epochs:
        raise InputError(f"'{log.path}' counts epochs, and the forecast knows no length of one: give it n_samples.")
    if log.batch_size:
        return (
            log.batch_size / question.batch_size,
            f"as many samples as the logged run needs at batch {log.batch_size}",
        )
    return 1.0, "as many updates as the logged run needs, whatever its batch size was"


def _quantiles(
    values: np.ndarray[Any, np.dtype[np.float64]], weights: np.ndarray[Any, np.dtype[np.float64]]
) -> Estimate:
    low, middle, high = weighted_quantiles(values[:, None], weights, _LEVELS)[:, 0]
    return Estimate(float(low), float(middle), float(high))
