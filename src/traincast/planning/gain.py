"""How sure a predicted gain is: errors that both forecasts share cancel, others add up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traincast.forecasting.device_times import DeviceTimes, device_times, steps_at
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.forecasting.spread import LINK_LOG_SD, WAITING_LOG_SD, WORKING_LOG_SD
from traincast.lognormal import p90_factor
from traincast.trace.graph import Phase

LINK, MACHINE = "link", "machine"
# How far one kind of op is off alike in two steps on one machine: a guess, not measured.
ALIKE = 0.9
# What a kind of change is off by besides, as the standard deviation of the logarithm of its gain: with it p10 to p90
# hold 80 % of the gains that others measured (benchmarks/what_if_gains.py; for layouts five rows, so nearer to their
# root mean square).
PRECISION_LOG_SD = 0.22
LAYOUT_LOG_SD = 0.1
COMPILED_LOG_SD = 0.15  # of compiled over eager: holds 80 % of 1,625 pairs in inference (benchmarks/compiled.py)
DOUBLED_BATCH_LOG_SD = 0.14


@dataclass(frozen=True, slots=True)
class ForecastWithErrors:
    """A forecast, and what its error is made of: the standard deviation of its logarithm by cause."""

    forecast: Forecast
    errors: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Gain:
    """Samples a second over those before, with p10 and p90."""

    speedup: float
    low: float
    high: float


def ask(question: Question, known: DeviceTimes | None = None) -> ForecastWithErrors:
    """The engine's answer. `known` are op times where they are not those of the question's own graph."""
    if known is None:
        known = device_times(question, np.array([question.micro_batch_size]))
    steps = steps_at(known, question, np.array([question.batch_size]))
    forecast = steps.forecasts()[0]
    if forecast.input_wait_s:
        return ForecastWithErrors(forecast, {})  # the loader sets the pace, and it is taken as exact
    timeline, step_s = steps.timeline, float(steps.parallel.step_s[0])
    link_share = float(steps.parallel.exposed_s[0]) / step_s if step_s else 0.0
    waiting = float(timeline.waiting_fraction[0])
    machine = 0.0 if question.device.prices else waiting * WAITING_LOG_SD + (1 - waiting) * WORKING_LOG_SD
    errors = {f"ops {group}": (1 - link_share) * sd for group, sd in _by_group(known, question).items()}
    errors |= {MACHINE: (1 - link_share) * machine, LINK: link_share * LINK_LOG_SD}
    return ForecastWithErrors(forecast, errors)


def _by_group(known: DeviceTimes, question: Question) -> dict[int, float]:
    """What the errors of each group of ops make of the step without its communication."""
    times, step_s = known.times, float(known.timeline.step_s[0])
    repeats = np.where(known.graph.op_phase == Phase.OPTIMIZER, 1.0, float(question.accumulation_steps))
    uncertain_s = times.seconds[0] if times.dispatch_s is None else times.seconds[0] + times.dispatch_s
    sums = np.bincount(times.error_group, weights=uncertain_s * times.log_sd * repeats)
    return {group: float(spread_s) / step_s for group, spread_s in enumerate(sums) if step_s}


def gain_of(
    before: ForecastWithErrors,
    after: ForecastWithErrors,
    *,
    other_kernels: bool = False,
    other_device: bool = False,
    own_log_sd: float = 0.0,
) -> Gain:
    """The same ops on one machine are off together, nearly; other kernels have errors of their own, devices all.

    `own_log_sd` is what the change itself is off by.
    """
    variance = own_log_sd**2
    for cause in {*before.errors, *after.errors}:
        own, new = before.errors.get(cause, 0.0), after.errors.get(cause, 0.0)
        is_same_place = cause in (LINK, MACHINE)
        alike = 0.0 if other_device or (other_kernels and not is_same_place) else 1.0 if is_same_place else ALIKE
        variance += own * own + new * new - 2 * alike * own * new
    speedup = after.forecast.samples_per_s / before.forecast.samples_per_s
    factor = p90_factor(math.sqrt(max(variance, 0.0)))
    return Gain(speedup, speedup / factor, speedup * factor)
