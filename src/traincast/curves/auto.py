"""The family "auto": laws above a floor along the sum of learning rates, and what a falling rate does to them.

    value = (floor + scale * falling(progress / last)) * exp(-drop * annealed)

`falling` is a power or an exponential (`shapes.py`), `annealed` is how far the rate has come down (`schedule.py`). How
much a curve drops for it is not in the curve before it happens: other runs tell (`priors.py`). Where the rate has begun
to come down, the points weigh the drops. A run whose rate nobody tells is continued without any fall (`untold.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.curves.curve import Curve
from traincast.curves.normal import normal_quantiles, spread_out
from traincast.curves.points import FEWEST, Bins, Points, binned
from traincast.curves.priors import Priors, shipped
from traincast.curves.schedule import Schedule
from traincast.curves.shapes import Shapes, falling, fit_shapes

Floats = NDArray[np.float64]

_N_MEMBERS = 512
# Places of a standard normal distribution at which drops are tried, and how much of it each stands for.
_DROP_SDS = np.array([-1.645, -1.036, -0.674, -0.319, 0.0, 0.319, 0.674, 1.036, 1.645])
_DROP_SHARES = np.array([0.1, 0.1, 0.1, 0.125, 0.15, 0.125, 0.1, 0.1, 0.1])
_LEAST = 1e-9
_HIGHEST = 1e12  # times where the curve is now: higher starts tell no more, and their squares stay numbers
_SEEN = 0.02  # of `annealed`: a rate that came down by less has told nothing
# What no law knows, relative: standing still, for each power of e that the curve moves, and for the noise of one value.
_STILL_SD, _MOVING_SD, _NOISE_SD = 0.004, 0.05, 0.3


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AnnealedLaws:
    """Members: a law, a schedule with a drop, and an error of what no law knows, in standard deviations."""

    exponent: Floats
    is_exponential: NDArray[np.bool_]
    floor: Floats
    scale: Floats
    drop: Floats
    next_drop: Floats  # for what the rate has yet to come down: one fall is not like the next
    error: Floats
    schedule: Schedule
    first_step: float
    last_step: float
    still_sd: float
    highest: float = math.inf  # of the points
    top: float | None = None  # an accuracy is this minus the member's value
    raised: float = 0.0  # losses below 0 were raised by this before they were fitted

    def values(self, steps: Floats) -> Floats:
        """One row a member, one column a step. So far no law is higher than what was logged, as powers are near 0."""
        now = np.maximum(self._laws(np.array([self.last_step])), _LEAST)
        found = np.maximum(self._laws(steps), _LEAST)
        found = np.where(steps > self.last_step, found, np.minimum(found, self.highest))
        moved = np.abs(np.log(found / now))
        sd = np.where(steps > self.last_step, self.still_sd + _MOVING_SD * moved, 0.5 * self.still_sd)
        found = found * np.exp(self.error[:, None] * sd)
        return found - self.raised if self.top is None else self.top - np.minimum(found, self.top)

    def _laws(self, steps: Floats) -> Floats:
        progress = self.schedule.progress
        whole = progress(np.array([self.last_step]))[0]
        ratio = np.maximum(progress(steps), 1e-6 * whole) / whole
        laws = self.floor[:, None] + self.scale[:, None] * falling(ratio, self.exponent, self.is_exponential)
        seen, to_come = self._annealed(steps)
        return laws * np.exp(-self.drop[:, None] * seen - self.next_drop[:, None] * to_come)

    def _annealed(self, steps: Floats) -> tuple[Floats, Floats]:
        """How far the rate came down since the first point that was fitted, and how far it has yet to."""
        begun, so_far = self.schedule.annealed(np.array([self.first_step, self.last_step])).tolist()
        annealed = self.schedule.annealed(steps)
        return np.minimum(annealed, so_far) - begun, np.maximum(annealed - so_far, 0.0)


def fit_auto(  # noqa: PLR0913  (a curve, its rates and length, what was done to its values, and other runs)
    points: Points,
    *,
    schedule: Schedule,
    total_steps: float | None = None,
    top: float | None = None,
    share_of: float | None = None,
    raised: float = 0.0,
    priors: Priors | None = None,
) -> Curve:
    """`points` are falling and above 0: losses, errors that are shares of `share_of`, or `top` minus an accuracy."""
    known = priors or shipped()
    bins = _bins(points, max(points.level(), _LEAST))
    whole = top or share_of
    annealing = known.loss if whole is None else known.error
    progress, annealed = schedule.progress(bins.steps), schedule.annealed(bins.steps)
    drops, shares = np.zeros(1), np.ones(1)
    if schedule.annealed(schedule.knots).max() > _SEEN:
        before = _before_the_drop(points, schedule)
        level = max(before.level(), _LEAST) / (whole or 1.0)
        drops = np.exp(annealing.log_drop(before.noise(), level) + annealing.log_sd * _DROP_SDS)
        shares = _DROP_SHARES
    fits, is_seen = _fitted(bins, progress, annealed, drops)
    laws = [
        _Law(shapes, drop, math.log(share) + shapes.log_evidence, is_seen)
        for shapes, drop, share in zip(fits, drops.tolist(), shares.tolist(), strict=True)
    ]
    now = max(points.level(), _LEAST) / (whole or 1.0)
    members, parameters = _members(laws, annealing.next_log_ratio(now), annealing.next_log_sd)
    return Curve(
        family="auto",
        members=AnnealedLaws(
            **members,
            schedule=schedule,
            first_step=float(bins.steps[0]),
            last_step=points.last_step,
            still_sd=_STILL_SD + _NOISE_SD * points.noise(),
            highest=float(points.values.max()),
            top=top,
            raised=raised,
        ),
        weights=np.full(_N_MEMBERS, 1.0 / _N_MEMBERS),
        first_step=float(points.steps[0]),
        last_step=points.last_step,
        total_steps=total_steps,
        is_rising=top is not None,
        parameters=parameters,
        warnings=points.warnings,
    )


def _before_the_drop(points: Points, rates: Schedule) -> Points:
    """What was logged at the highest rate: it tells how far the curve will fall; all, where that is too little."""
    is_high = rates.annealed(points.steps) <= _SEEN
    if is_high.all() or is_high.sum() < 2 * FEWEST:
        return points
    return Points(points.steps[is_high], points.values[is_high])


def _bins(points: Points, level: float) -> Bins:
    bins = binned(points)
    return Bins(bins.steps, np.clip(bins.values, 1e-3 * level, _HIGHEST * level), bins.counts)


@dataclass(frozen=True, eq=False, slots=True)
class _Law:
    """Laws with one drop; `log_weight` says how likely these are."""

    shapes: Shapes
    drop: float
    log_weight: float
    is_seen: bool  # a part of the drop is in the points


def _fitted(bins: Bins, progress: Floats, annealed: Floats, drops: Floats) -> tuple[list[Shapes], bool]:
    """For each drop laws through what the points would be at the first one's rate; and whether the points tell of it.

    Where they do not, all drops are as likely as before.
    """
    annealed = annealed - annealed[0]
    if np.ptp(annealed) <= _SEEN:
        return [fit_shapes(progress, bins.values, bins.counts)] * len(drops), False
    return [fit_shapes(progress, bins.values * np.exp(drop * annealed), bins.counts) for drop in drops.tolist()], True


def _members(laws: Sequence[_Law], log_ratio: float, log_sd: float) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """As many equally likely ones as are drawn from all laws, evenly and always the same; and the likeliest law."""
    log_weights = np.array([law.log_weight for law in laws])
    shares = np.exp(log_weights - log_weights.max())
    sizes = [len(law.shapes.weight) for law in laws]
    weight = np.concatenate([share * law.shapes.weight for share, law in zip(shares, laws, strict=True)])
    known: dict[str, NDArray[Any]] = {
        name: np.concatenate([getattr(law.shapes, name) for law in laws])
        for name in ("exponent", "is_exponential", "floor", "scale")
    }
    known["drop"] = np.repeat([law.drop for law in laws], sizes)
    at = (np.arange(_N_MEMBERS) + 0.5) / _N_MEMBERS
    drawn = np.searchsorted(np.cumsum(weight) / weight.sum(), at)
    members = {name: values[drawn] for name, values in known.items()}
    unlike = log_ratio + log_sd * normal_quantiles(spread_out(_N_MEMBERS, math.sqrt(2.0)))
    is_seen = np.repeat([law.is_seen for law in laws], sizes)[drawn]
    members["next_drop"] = members["drop"] * np.exp(np.where(is_seen, unlike, 0.0))
    members["error"] = normal_quantiles(spread_out(_N_MEMBERS, 0.5 * (1.0 + math.sqrt(5.0))))
    likeliest = int(np.argmax(weight))
    return members, {name: float(known[name][likeliest]) for name in ("exponent", "floor", "scale", "drop")}
