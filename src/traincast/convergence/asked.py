"""What is asked of a log, and what of it answers that: the series, the length of the run, its learning rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.convergence.curves.curve import Curve
from traincast.convergence.curves.fit import Kind, continue_like, fit_curve
from traincast.convergence.curves.points import FEWEST
from traincast.convergence.curves.schedule import LearningRate
from traincast.convergence.logs.log import Log, Series
from traincast.convergence.logs.names import has_top, is_known
from traincast.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a run. What is None is taken from its log, or not asked."""

    metric: str | None = None
    split: str | None = None
    target: float | None = None
    total_steps: float | None = None
    n_epochs: float | None = None
    learning_rate: LearningRate | None = None
    family: str = "auto"
    step_s: float | None = None  # expected: a forecast
    step_log_sd: float = 0.0  # how sure that is
    prefers_clock: bool = True  # the log's, to what was expected
    usd_per_hour: float | None = None  # of all devices together
    like: tuple[Log, ...] = ()  # earlier whole runs of the same kind
    relation_from: tuple[Log, ...] = ()  # runs that tell how accuracy follows from loss

    def __post_init__(self) -> None:
        for name, value in (
            ("The total number of steps", self.total_steps),
            ("The number of epochs", self.n_epochs),
            ("The time of a step", self.step_s),
        ):
            if value is not None and not 0 < value < np.inf:
                raise InputError(f"{name} should be above 0, not {value:g}.")
        if self.usd_per_hour is not None and not 0 <= self.usd_per_hour < np.inf:
            raise InputError(f"A price should be at least 0, not {self.usd_per_hour:g}.")
        if self.target is not None and not np.isfinite(self.target):
            raise InputError(f"A target is a finite number, not {self.target}.")
        if self.like and (self.learning_rate is not None or self.family != "auto"):
            raise InputError(
                "A run that is continued as others went has no family and no learning rate: leave them out."
            )
        if self.family == "optimus" and self.learning_rate is not None:
            raise InputError("The law of Optimus knows no learning rate: leave it out, or take the family auto.")


def series_for(log: Log, asked: Asked) -> Series:
    """What was asked for, by default a loss: of validation, which says most, then of training, then what there is."""
    if asked.metric is None and asked.split is None and not any(one.metric == "loss" for one in log.series):
        return log.find(log.series[0].name) if log.series else log.find("loss")
    return best_of(log, asked.metric or "loss", asked.split)


def best_of(log: Log, metric: str, split: str | None) -> Series:
    """Validation before training, as soon as there is enough of it for a curve."""
    wanted = metric.strip().lower()
    for one in log.series if split is None else ():
        if one.split == "validation" and len(one) >= FEWEST and wanted in (one.metric, one.name.lower()):
            return log.find(metric, "validation")
    return log.find(metric, split)


def target_for(series: Series, target: float) -> tuple[float, tuple[str, ...]]:
    """The target in the unit of the series, and a word where that is another: 92 beside accuracies up to 1 is 0.92."""
    highest = float(series.values.max(initial=0.0))
    if not has_top(series.metric) or highest > 100.01:
        return target, ()
    if not 0 <= target <= 100:
        raise InputError(
            f"'{series.name}' goes from 0 to 1, or to 100 in percent: a target of {target:g} is not in between."
        )
    factor = 0.01 if highest <= 1.0001 and target > 1 else 100.0 if highest > 1.0001 and 0 < target < 1 else 1.0
    if factor == 1.0:
        return target, ()
    meant = target * factor
    unit = "percent" if factor < 1 else "a fraction"
    return meant, (f"The target {target:g} is taken for {unit}: {meant:g} in the unit of '{series.name}'.",)


def about(series: Series) -> tuple[str, ...]:
    """What is taken for granted of a metric that we do not know."""
    return () if is_known(series.metric) else (f"'{series.metric}' is taken to be better when lower.",)


def length_for(log: Log, asked: Asked) -> float | None:
    """Steps of the whole run, or epochs where the log counts these; None while nobody knows what an epoch has."""
    if asked.total_steps is not None:
        return float(asked.total_steps)
    steps_per_epoch = 1.0 if log.counts_epochs else log.steps_per_epoch
    if asked.n_epochs is None and log.total_steps is not None:
        return float(log.total_steps)
    n_epochs = asked.n_epochs if asked.n_epochs is not None else log.n_epochs
    return None if n_epochs is None or not steps_per_epoch else n_epochs * steps_per_epoch


def curve_for(log: Log, series: Series, asked: Asked) -> Curve:
    """The series continued, with the rates that are given, or that the log has."""
    end, kind = length_for(log, asked), _kind(series)
    if asked.like:
        earlier = [other.find(series.metric, series.split) for other in asked.like]
        like = [(one.steps, one.values) for one in earlier]
        return continue_like(series.steps, series.values, like, total_steps=end, metric=kind)
    rates = _rates(log, series, asked, end) if asked.family != "optimus" else None
    return fit_curve(series.steps, series.values, asked.family, total_steps=end, learning_rate=rates, metric=kind)


def _kind(series: Series) -> Kind:
    if not series.is_rising:
        return "loss"
    is_in_range = series.values.min() >= 0.0 and series.values.max() <= 100.0
    return "accuracy" if has_top(series.metric) and is_in_range else "reward"


def _rates(log: Log, series: Series, asked: Asked, end: float | None) -> LearningRate | None:
    """What is given; where that needs a length in epochs whose steps are not known yet, what was logged until then."""
    given = asked.learning_rate
    needs_end = isinstance(given, str) and given.strip().lower().startswith(("linear", "cosine"))
    is_early = needs_end and end is None and asked.n_epochs is not None
    return _logged_rates(log, series) if given is None or is_early else given


def _logged_rates(log: Log, series: Series) -> LearningRate | None:
    """At the steps of the series; None while they say nothing, as at the start of a warm-up from 0."""
    rates = log.learning_rate
    if rates is None or len(rates) < 2 or not rates.values.max() > 0 or rates.values.min() < 0:
        return None
    return np.interp(series.steps, rates.steps, rates.values)
