"""What the learning rate does to a curve: slower progress, and a lower floor once it has come down.

A curve falls along the sum of the rates so far, not along steps; and when the rate comes down, the loss falls by what
its noise had held it up. The second is by far the larger: at a milestone it is a cliff, in a linear decay a slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.logs import argument_checks

Floats = NDArray[np.float64]
LearningRate = (
    float | str | Callable[[float], float] | Mapping[float, float] | Sequence[float] | NDArray[np.floating[Any]]
)

_KNOTS = 1024
_FURTHEST = 100.0  # times the last step: so far a function of the step is asked where no end is known
_LEAST_RATE = 0.01  # below a hundredth, a lower rate lowers nothing more
_EVEN = 4.0  # levels of a steady fall differ by steps whose sizes are within this factor


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """Rates relative to the highest, linear between knots."""

    knots: Floats
    rates: Floats

    def rate(self, steps: Floats) -> Floats:
        return np.interp(steps, self.knots, self.rates)

    def progress(self, steps: Floats) -> Floats:
        """Steps at the highest rate that would have come as far."""
        gained = np.diff(self.knots) * 0.5 * (self.rates[1:] + self.rates[:-1])
        sums = np.r_[0.0, np.cumsum(gained)]
        beyond = np.maximum(steps - self.knots[-1], 0.0) * max(float(self.rates[-1]), _LEAST_RATE)
        return np.interp(steps, self.knots, sums) + self.knots[0] + beyond

    def annealed(self, steps: Floats) -> Floats:
        """How far the rate has come down, in powers of a hundred: 0 at the highest, 0.5 at a tenth of it."""
        return -0.5 * np.log10(np.maximum(self.rate(steps), _LEAST_RATE))


def constant(last_step: float) -> Schedule:
    """A rate that never changes."""
    return Schedule(np.array([0.0, max(last_step, 1.0)]), np.ones(2))


def read_schedule(learning_rate: LearningRate | None, steps: Floats, total_steps: float | None) -> Schedule | None:
    """From words, one rate, a function of the step, {step: rate from it on}, or one rate a logged step or any step.

    None where nothing is known of the future. Rates of logged steps alone tell the future only where they fall to zero
    at the end of the run; a rate that was constant so far may still come down. `steps` are as they were logged.
    """
    if learning_rate is None:
        return None
    last = float(np.nanmax(steps))
    if isinstance(learning_rate, str):
        learning_rate = schedule_of_words(learning_rate, total_steps)
    if hasattr(learning_rate, "__float__") and getattr(learning_rate, "ndim", 0) == 0:
        return _schedule(
            np.array([0.0, max(last, 1.0)]), np.full(2, argument_checks.number("learning_rate", learning_rate))
        )
    if callable(learning_rate):
        knots = np.linspace(0.0, total_steps or last, _KNOTS)
        if not total_steps:
            knots = np.r_[knots, np.geomspace(last, _FURTHEST * last, _KNOTS)[1:]]
        return _schedule(knots, np.array([_rate_at(learning_rate, step) for step in knots.tolist()]))
    if isinstance(learning_rate, Mapping):
        return _stairs(learning_rate, float(total_steps or last))
    rates = argument_checks.floats("learning_rate", learning_rate)
    if len(rates) == len(steps) and not (total_steps and len(rates) == int(total_steps)):
        return _continued(_logged(steps, rates), total_steps)
    if total_steps and len(rates) in (int(total_steps), int(total_steps) + 1):
        return _schedule(np.arange(len(rates), dtype=float), rates)
    raise InputError(
        f"learning_rate has {len(rates)} rates: give one for each of the {len(steps)} values"
        f"{f', one for each of {total_steps:g} steps' if total_steps else ''}, a function of the step, or "
        "{step: rate from it on}."
    )


def _milestone(what: str, value: object) -> float:
    """JSON has words for keys."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return argument_checks.number(f"A {what} of learning_rate", value)


def _rate_at(learning_rate: Callable[[float], object], step: float) -> float:
    try:
        return argument_checks.number(f"learning_rate at step {step:g}", learning_rate(step))
    except ZeroDivisionError:  # 1/sqrt(step), as of Noam's, has no rate at step 0
        return math.nan


def _schedule(knots: Floats, rates: Floats) -> Schedule:
    is_finite = np.isfinite(rates)
    if not is_finite.any() or (rates[is_finite] < 0).any() or not rates[is_finite].max() > 0:
        raise InputError("Learning rates should be finite, not below 0, and not all 0.")
    knots, rates = knots[is_finite], rates[is_finite]
    # A warm-up is no decay: before its peak the rate counts as the peak for the floor, and little is lost in progress.
    rates = rates / rates.max()
    rates[: int(np.argmax(rates))] = 1.0
    return Schedule(knots, rates)


def _logged(steps: Floats, rates: Floats) -> Schedule:
    """Rates of steps that need not be in order; those of a step that is not finite say nothing."""
    is_finite = np.isfinite(steps)
    steps, rates = steps[is_finite], rates[is_finite]
    order = np.argsort(steps, kind="stable")
    return _schedule(steps[order], rates[order])


def _stairs(milestones: Mapping[float, float], end: float) -> Schedule:
    """Each rate holds from its step on; the first also before."""
    if not milestones:
        raise InputError("learning_rate is empty: give {step: rate from that step on}.")
    places = sorted((_milestone("step", step), _milestone("rate", rate)) for step, rate in milestones.items())
    if not all(0 <= place < math.inf for place, _ in places):
        raise InputError(f"The steps of learning_rate should be finite and not below 0: {dict(milestones)} cannot be.")
    narrow = 1e-9 * max(end, 1.0)
    knots, rates = [0.0], [places[0][1]]
    for (_, before), (place, after) in pairwise(places):
        knots += [place - narrow, place]
        rates += [before, after]
    return _schedule(np.array([*knots, max(end, knots[-1] + 1.0)]), np.array([*rates, places[-1][1]]))


def _continued(seen: Schedule, total_steps: float | None) -> Schedule | None:
    """A rate that has begun to fall steadily is taken to reach zero at the end of the run, along the same line."""
    last = float(seen.rates[-1])
    if total_steps is not None and total_steps <= seen.knots[-1]:
        return seen
    if last > 0.999:
        return None
    if total_steps is None:
        return seen
    end_rate = 0.0 if _falls_steadily(seen) else last  # stairs: the next one is not known
    return Schedule(np.r_[seen.knots, total_steps], np.r_[seen.rates, end_rate])


def _falls_steadily(seen: Schedule) -> bool:
    """By the levels of the last fifth: a scheduler may be stepped once an epoch, and a log may round what it writes."""
    late = seen.rates[seen.knots > seen.knots[0] + 0.8 * (seen.knots[-1] - seen.knots[0])]
    falls = -np.diff(late)
    falls = falls[falls != 0]
    return len(falls) >= 2 and bool((falls > 0).all()) and float(falls.max()) <= _EVEN * float(np.median(falls))


def schedule_of_words(text: str, total_steps: float | None) -> LearningRate:
    """'constant', 'linear', 'cosine', 'linear:0.4' (over the last 40 % of the run) or '0.1,0.01@32000,0.001@48000'."""
    name, _, share_text = text.strip().lower().partition(":")
    if name == "constant" and not share_text:
        return lambda step: 1.0
    if name in ("linear", "cosine"):
        if total_steps is None:
            raise InputError(f"A learning rate that is '{text}' needs the length of the run: give its total steps.")
        share = _number(share_text or "1", text)
        if not 0 < share <= 1:
            raise InputError(f"'{text}': the share of the run should be above 0 and at most 1, not {share:g}.")
        return partial(_decayed, name == "cosine", (1 - share) * total_steps, total_steps)
    rates = {}
    for part in text.split(","):
        rate, at, place = part.partition("@")
        rates[_number(place if at else "0", text)] = _number(rate, text)
    return rates


def _decayed(is_cosine: bool, start: float, end: float, step: float) -> float:
    done = min(max((step - start) / (end - start), 0.0), 1.0)
    return 0.5 * (1.0 + math.cos(math.pi * done)) if is_cosine else 1.0 - done


def _number(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise InputError(
            f"'{text}' is not a learning rate: write constant, linear, cosine, linear:0.4 (the last 40 % of the "
            "run), or rates with the steps at which they start, 0.1,0.01@32000."
        )
    return value
