"""`fit_curve`: a law through logged values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from traincast.convergence.curves.curve import Curve
from traincast.convergence.curves.points import Points, clean
from traincast.convergence.curves.schedule import LearningRate, read_schedule
from traincast.errors import InputError, close_names

FAMILIES = ("auto", "optimus")
Metric = Literal["loss", "accuracy"]
_FEW = 8


def fit_curve(
    steps: ArrayLike,
    losses: ArrayLike,
    family: str = "auto",
    *,
    total_steps: float | None = None,
    learning_rate: LearningRate | None = None,
    metric: Metric | None = None,
) -> Curve:
    """Where a run will end and when it is good enough, from what it has logged so far.

    `losses` may be accuracies: values between 0 and 1 that rise are taken for such unless `metric` says what they are.
    `total_steps` is the length of the run. `learning_rate` is a word ("cosine"), one rate, a function of the step,
    {step: rate from it on}, one rate a logged value, or one a step of the run. Steps may be epochs, if all of it is.
    """
    points = clean(steps, losses)
    if total_steps is not None and not (np.isfinite(total_steps) and total_steps > 0):
        raise InputError(f"total_steps should be above 0, not {total_steps}.")
    if family == "optimus":
        from traincast.convergence.curves.optimus import fit_optimus

        return fit_optimus(steps, losses, total_steps=total_steps)
    if family != "auto":
        raise InputError(f"There is no family '{family}'.{close_names(family, FAMILIES)} Known: {', '.join(FAMILIES)}.")
    from traincast.convergence.curves.auto import fit_auto

    schedule = read_schedule(learning_rate, np.asarray(steps, float).ravel(), total_steps)
    if (metric or _metric_of(points)) == "loss":
        raised = _raised(points)
        above = replace(points, values=points.values + raised)
        return _told(fit_auto(above, schedule=schedule, total_steps=total_steps, raised=raised), points)
    top = _top([points])
    return _told(fit_auto(_errors(points, top), schedule=schedule, total_steps=total_steps, top=top), points)


def continue_like(
    steps: ArrayLike,
    losses: ArrayLike,
    like: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    total_steps: float | None,
    metric: Metric | None = None,
) -> Curve:
    """A run continued as earlier whole runs of its kind went: `like` has steps and values of each of them."""
    from traincast.convergence.curves.like import fit_like

    points, siblings = clean(steps, losses), [clean(*sibling) for sibling in like]
    if (metric or _metric_of(points)) == "accuracy":
        top = _top([points, *siblings])
        own, *others = (_errors(one, top) for one in (points, *siblings))
        return _told(fit_like(own, others, total_steps=total_steps, top=top), points)
    lowest = min(float(one.values.min()) for one in (points, *siblings))
    if lowest <= 0:
        raise InputError(f"Runs are continued as their siblings went by ratios: losses are above 0, not {lowest:g}.")
    return _told(fit_like(points, siblings, total_steps=total_steps, top=None), points)


def _top(curves: Sequence[Points]) -> float:
    """1 or 100, whichever accuracies are shares of."""
    low, high = (float(pick([pick(one.values) for one in curves])) for pick in (np.min, np.max))
    top = 1.0 if high <= 1.0 else 100.0
    if high > top or low < 0.0:
        raise InputError(f"Accuracies are between 0 and 1, or 0 and 100, not {low:g} to {high:g}.")
    return top


def _errors(points: Points, top: float) -> Points:
    return replace(points, values=np.maximum(top - points.values, 1e-4 * top))


def _metric_of(points: Points) -> Metric:
    """Values between 0 and 1 whose second half is higher than the first are accuracies."""
    half = len(points.values) // 2
    is_rising = np.median(points.values[half:]) > np.median(points.values[:half])
    is_share = points.values.min() >= 0.0 and points.values.max() <= 1.0
    return "accuracy" if is_rising and is_share else "loss"


def _raised(points: Points) -> float:
    """Laws are of values above 0: losses that are not are raised by as much as they span."""
    low, high = float(points.values.min()), float(points.values.max())
    return 0.0 if low > 0 else (high - low or 1.0) - low


def _told(curve: Curve, points: Points) -> Curve:
    """With a word on what was fitted, where that is no ordinary curve."""
    values, quarter = points.values, max(2, len(points.values) // 4)
    first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
    warnings = list(curve.warnings)
    if np.ptp(values) <= 1e-9 * max(abs(first), 1e-12):
        warnings.append(f"All values are {values[0]:g}: there is no curve to continue.")
    elif not curve.is_rising and last > first + 2.0 * points.noise() * abs(first):
        warnings.append(
            f"The loss rises, from {first:.3g} to {last:.3g}: it is continued as it is now, and may diverge."
        )
    elif curve.is_rising and last < first:
        warnings.append(f"The accuracy falls, from {first:.3g} to {last:.3g}: it is continued as it is now.")
    if len(values) < _FEW:
        warnings.append(f"{len(values)} points tell little of a curve's shape.")
    return replace(curve, warnings=tuple(warnings))
