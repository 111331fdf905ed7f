"""What is asked of a log, and what of it answers that: the series, the length of the run, its learning rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.convergence.curves.curve import Curve
from traincast.convergence.curves.fit import Metric, continue_like, fit_curve
from traincast.convergence.curves.schedule import LearningRate, schedule_of_words
from traincast.convergence.logs.log import Log, Series
from traincast.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a run. What is None is taken from its log, or not asked."""

    metric: str | None = None
    split: str | None = None
    target: float | None = None
    total_steps: float | None = None
    n_epochs: float | None = None
    learning_rate: LearningRate | str | None = None
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


def series_for(log: Log, asked: Asked) -> Series:
    """What was asked for; else the loss that says most: of validation, then of training, then whatever there is."""
    if asked.metric is not None or asked.split is not None:
        return log.find(asked.metric or "loss", asked.split)
    for wanted in (("loss", "validation"), ("loss", "train")):
        if any((one.metric, one.split) == wanted and len(one) > 3 for one in log.series):
            return log.find(*wanted)
    return log.find(log.series[0].name) if log.series else log.find("loss")


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
    end = length_for(log, asked)
    rates = asked.learning_rate
    if isinstance(rates, str):
        rates = schedule_of_words(rates, end)
    elif rates is None:
        rates = _logged_rates(log, series)
    kind: Metric | None = "accuracy" if series.metric == "accuracy" else "loss" if series.metric == "loss" else None
    if asked.like:
        earlier = [other.find(series.metric, series.split) for other in asked.like]
        like = [(one.steps, one.values) for one in earlier]
        return continue_like(series.steps, series.values, like, total_steps=end, metric=kind)
    return fit_curve(series.steps, series.values, asked.family, total_steps=end, learning_rate=rates, metric=kind)


def _logged_rates(log: Log, series: Series) -> LearningRate | None:
    """At the steps of the series; None while they say nothing, as at the start of a warm-up from 0."""
    rates = log.learning_rate
    if rates is None or len(rates) < 2 or not rates.values.max() > 0 or rates.values.min() < 0:
        return None
    return np.interp(series.steps, rates.steps, rates.values)
