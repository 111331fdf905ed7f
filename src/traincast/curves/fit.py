"""`fit_curve`: a law through logged values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traincast.curves.curve import Curve, Rescaled
from traincast.curves.points import Points, clean
from traincast.curves.priors import Priors
from traincast.curves.schedule import LearningRate, Schedule, constant, read_schedule
from traincast.errors import InputError
from traincast.logs import argument_checks
from traincast.logs.names import has_top, is_error_rate, is_rising, metric_of

# Falling; falling from 1 or 100 as a share does; rising to 1 or 100; rising to nobody knows what.
Kind = Literal["loss", "error", "accuracy", "reward"]
Floats = NDArray[np.float64]
_FEW = 8
_PERCENT = 100.0
_FLAT_LOG_SDS = (0.05, 5.0)  # of what is continued as it is: at least and at most
_USUAL_LEVELS = (1e-6, 1e6)  # of losses that other runs tell anything about
_LEAST_RAISE = 1e-6  # of the lowest loss: less is lost in rounding
_HIGHEST_SPIKE = 1e100  # times the level: higher ones tell no more, and have no square
_MOST = 100_000  # values of which a median is taken: more tell no more


def kind_of(metric: str) -> Kind:
    """What a metric is like, by its name: 'val_loss', 'f1', 'reward'."""
    known = metric_of(metric)
    if known is None:
        raise InputError(f"The metric '{metric}' is unknown: say loss or accuracy, whichever it resembles.")
    if is_error_rate(known.metric):
        return "error"
    return "accuracy" if has_top(known.metric) else "reward" if is_rising(known.metric) else "loss"


def fit_curve(  # noqa: PLR0913  (the arguments of traincast.fit_curve, and what other runs tell)
    steps: ArrayLike,
    losses: ArrayLike,
    family: str = "auto",
    *,
    total_steps: float | None = None,
    learning_rate: LearningRate | None = None,
    metric: Kind | None = None,
    priors: Priors | None = None,
) -> Curve:
    """Where a run will end and when it is good enough, from what it has logged so far.

    `losses` may be accuracies: values between 0 and 1 that rise are taken for such unless `metric` says what they are.
    `total_steps` is the length of the run. `learning_rate` is a word ("cosine"), one rate, a function of the step,
    {step: rate from it on}, one rate a logged value, or one a step of the run. Steps may be epochs, if all of it is.
    `priors` are what other runs tell, by default those that traincast ships.
    """
    places = argument_checks.floats("The steps of a curve", steps)
    points = _points(places, losses, total_steps)
    kind = metric or _guessed(points)
    if metric is None and kind == "accuracy":
        told = "The values rise between 0 and 1 and are read as accuracies; use metric='loss' otherwise."
        points = _remarked(points, told)
    elif metric is None and _rises(points):
        points = _remarked(points, "The values rise and are read as losses; use metric='accuracy' otherwise.")
    if family == "optimus":
        if learning_rate is not None:
            points = _remarked(points, "Optimus' law has no learning rate: the given one is ignored.")
        return _fit_optimus(points, kind, total_steps)
    known = _Known(read_schedule(learning_rate, places, total_steps), total_steps, priors)
    return _told(_fit_auto(points, kind, known), points)


def _points(steps: ArrayLike, losses: ArrayLike, total_steps: float | None) -> Points:
    points = clean(steps, losses)
    if total_steps is None:
        return points
    argument_checks.above_0("The length of the run", total_steps)  # it may be that of a log
    if points.last_step <= total_steps:
        return points
    told = (
        f"The log goes on to {points.last_step:g}, beyond total_steps: what comes after {total_steps:g} is not asked."
    )
    return _remarked(points, told)


def _remarked(points: Points, sentence: str) -> Points:
    return replace(points, warnings=(*points.warnings, sentence))


@dataclass(frozen=True, slots=True)
class _Known:
    """Beside the points: the rates, the length of the run, and what other runs tell."""

    schedule: Schedule | None
    total_steps: float | None
    priors: Priors | None

    def fit(
        self, points: Points, *, top: float | None = None, share_of: float | None = None, raised: float = 0.0
    ) -> Curve:
        """Along the rates, or as runs go whose rates nobody tells."""
        from traincast.curves.auto import fit_auto
        from traincast.curves.untold import fit_untold

        fit = fit_untold if self.schedule is None else partial(fit_auto, schedule=self.schedule)
        return fit(points, total_steps=self.total_steps, top=top, share_of=share_of, raised=raised, priors=self.priors)


def _fit_auto(points: Points, kind: Kind, known: _Known) -> Curve:
    from traincast.curves.untold import about_the_rate

    if kind in ("loss", "error"):
        whole = _whole_of_errors(points) if kind == "error" else None
        curve = _fit_losses(points, known, whole)
    elif kind == "accuracy":
        top = _top([points])
        curve = known.fit(_errors(points, top), top=top)
    else:
        shares, width, low = _as_shares(points)
        curve = known.fit(_errors(shares, 1.0), top=1.0)
        curve = replace(curve, members=Rescaled(curve.members, width, low))
    if known.schedule is not None or _is_flat(points, kind):
        return curve
    return replace(curve, warnings=(*curve.warnings, *about_the_rate(curve)))


def _whole_of_errors(points: Points) -> float | None:
    """1 or 100, whichever errors are shares of; None where they are none."""
    high = float(points.values.max())
    return None if points.values.min() < 0 or high > _PERCENT else 1.0 if high <= 1.0 else _PERCENT


def _is_flat(points: Points, kind: Kind) -> bool:
    """Losses that are continued as they are now."""
    return kind in ("loss", "error") and (_is_constant(points) or _rises(points))


def _fit_losses(points: Points, known: _Known, whole: float | None) -> Curve:
    """Laws fall, are above 0, and are told apart by levels of usual losses: what is otherwise is made so and back."""
    raised = _raised(points)
    above = replace(points, values=points.values + raised)
    if _is_constant(points) or _rises(points):
        late = above.values[len(above.values) // 2 :]
        flat = replace(above, values=np.full(len(above.values), above.level()))
        curve = replace(known, schedule=constant(points.last_step)).fit(flat, raised=raised)
        wide = float(np.clip(np.ptp(np.log(late)), *_FLAT_LOG_SDS))
        return replace(curve, members=replace(curve.members, still_sd=wide))  # type: ignore[type-var]
    above = replace(above, values=np.minimum(above.values, _HIGHEST_SPIKE * above.level()))
    unit = above.level() / float(np.clip(above.level(), *_USUAL_LEVELS))
    if unit == 1.0:
        return known.fit(above, share_of=whole, raised=raised)
    curve = known.fit(replace(above, values=above.values / unit))
    return replace(curve, members=Rescaled(curve.members, unit, -raised))


def _fit_optimus(points: Points, kind: Kind, total_steps: float | None) -> Curve:
    """The law is of losses: of what rises, it is fitted to what that lacks to its top."""
    from traincast.curves.optimus import fit_points

    if kind in ("loss", "error"):
        return fit_points(points, total_steps=total_steps)
    shares, width, low = _as_shares(points) if kind == "reward" else (points, 1.0, 0.0)
    top = 1.0 if kind == "reward" else _top([points])
    curve = fit_points(_errors(shares, top), total_steps=total_steps)
    told = f"Optimus' law describes losses: it is fitted to the distance of the values from {low + width * top:.4g}."
    members = Rescaled(curve.members, -width, low + width * top, most=top)
    return replace(curve, members=members, is_rising=True, warnings=(told, *curve.warnings))


def _as_shares(points: Points) -> tuple[Points, float, float]:
    """Values without a top as shares of one: twice what they have spanned. With it the width and where it begins."""
    low, high = float(points.values.min()), float(points.values.max())
    width = 2.0 * (high - low) or 1.0
    told = f"These values have no known upper bound: at most {low + width:.4g} is assumed."
    shares = replace(points, values=(points.values - low) / width, warnings=(*points.warnings, told))
    return shares, width, low


def continue_like(
    steps: ArrayLike,
    losses: ArrayLike,
    like: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    total_steps: float | None,
    metric: Kind | None = None,
) -> Curve:
    """A run continued as earlier whole runs of its kind went: `like` has steps and values of each of them."""
    from traincast.curves.like import fit_like

    points, siblings = _points(steps, losses, total_steps), [clean(*one) for one in like]
    kind = metric or _guessed(points)
    if kind == "reward":
        raise InputError(
            "Continuing like other runs needs ratios, which a metric without an upper bound does not have."
        )
    if kind == "accuracy":
        top = _top([points, *siblings])
        own, *others = (_errors(one, top) for one in (points, *siblings))
        return _told(fit_like(own, others, total_steps=total_steps, top=top), points)
    lowest = min(float(one.values.min()) for one in (points, *siblings))
    if lowest <= 0:
        raise InputError(f"Continuing like other runs needs ratios, so losses should be above 0, not {lowest:g}.")
    return _told(fit_like(points, siblings, total_steps=total_steps, top=None), points)


def _top(curves: Sequence[Points]) -> float:
    """1 or 100, whichever accuracies are shares of."""
    low, high = (float(pick([pick(one.values) for one in curves])) for pick in (np.min, np.max))
    is_share = all(_is_share(one.values) for one in curves)
    top = 1.0 if is_share else _PERCENT
    high = min(high, top) if is_share else high
    if high > top or low < 0.0:
        raise InputError(f"Accuracies should be between 0 and 1, or 0 and 100, not {low:g} to {high:g}.")
    return top


def _is_share(values: Floats) -> bool:
    """Of 1: a single value above it, with most others and the latest below, is a fault of the log."""
    above = values > 1.0
    is_fault = above.sum() == 1 and not above[-1] and float(values.max()) <= _PERCENT
    return not above.any() or bool(is_fault and np.median(values[len(values) // 2 :]) <= 1.0)


def _errors(points: Points, top: float) -> Points:
    return replace(points, values=np.maximum(top - points.values, 1e-4 * top))


def _guessed(points: Points) -> Kind:
    """Values between 0 and 1 whose second half is higher than the first are accuracies."""
    if points.values.max() > 1.0 or points.values.min() < 0.0:
        return "loss"
    half = len(points.values) // 2
    return "accuracy" if np.median(points.values[half:]) > np.median(points.values[:half]) else "loss"


def _raised(points: Points) -> float:
    """Laws are of values above 0: losses that are not are raised by as much as they span."""
    low, high = float(points.values.min()), float(points.values.max())
    return 0.0 if low > 0 else max(high - low or 1.0, _LEAST_RAISE * -low) - low


def _is_constant(points: Points) -> bool:
    return bool(np.ptp(points.values) <= 1e-9 * np.abs(points.values).max())


def _rises(points: Points) -> bool:
    """By more than its noise, from the first to the last quarter."""
    first, last = _ends(points)
    return last > first and last > first + 2.0 * points.noise() * abs(first)


def _ends(points: Points) -> tuple[float, float]:
    """Medians of the first and the last quarter."""
    values = points.values[:: 1 + len(points.values) // _MOST]
    quarter = max(2, len(values) // 4)
    return float(np.median(values[:quarter])), float(np.median(values[-quarter:]))


def _told(curve: Curve, points: Points) -> Curve:
    """With a word on what was fitted, where that is no ordinary curve."""
    first, last = _ends(points)
    warnings = list(curve.warnings)
    if _is_constant(points):
        warnings.append(f"All values are {points.values[0]:g}: there is no curve to extrapolate.")
    elif not curve.is_rising and _rises(points):
        warnings.append(
            f"The loss rises, from {first:.3g} to {last:.3g}: it is extrapolated as it is now, and may diverge."
        )
    elif curve.is_rising and last < first:
        warnings.append(f"The accuracy falls, from {first:.3g} to {last:.3g}: it is extrapolated as it is now.")
    if len(points.values) < _FEW:
        warnings.append(f"{len(points.values)} points say little about the shape of a curve.")
    return replace(curve, warnings=tuple(warnings))
