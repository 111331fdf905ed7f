"""The family "auto": power laws above a floor along the sum of learning rates, and what a falling rate does to them.

    value = (floor + scale * (progress / last) ** -exponent) * exp(-drop * annealed)

`annealed` is how far the rate has come down (`schedule.py`). How much a curve drops for it is not in the curve before
it happens: other runs tell (`priors.py`). Where the rate has begun to come down, the points weigh the drops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.convergence.curves.curve import Curve
from traincast.convergence.curves.normal import normal_quantiles, spread_out
from traincast.convergence.curves.points import FEWEST, Bins, Points, binned
from traincast.convergence.curves.priors import Annealing, Priors, shipped
from traincast.convergence.curves.schedule import Schedule, constant, usual_decay
from traincast.convergence.curves.shapes import Shapes, fit_shapes

Floats = NDArray[np.float64]

_N_MEMBERS = 512
# Places of a standard normal distribution at which drops are tried, and how much of it each stands for.
_DROP_SDS = np.array([-1.645, -1.036, -0.674, -0.319, 0.0, 0.319, 0.674, 1.036, 1.645])
_DROP_SHARES = np.array([0.1, 0.1, 0.1, 0.125, 0.15, 0.125, 0.1, 0.1, 0.1])
_LEAST = 1e-9
_NEXT_LOG_SD = 0.5
_SEEN = 0.02  # of `annealed`: a rate that came down by less has told nothing


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AnnealedPowers:
    """Members: a law, a drop, and an error of what no law knows, in standard deviations."""

    exponent: Floats
    floor: Floats
    scale: Floats
    drop: Floats
    next_drop: Floats  # for what the rate has yet to come down: one fall is not like the next
    error: Floats
    schedule: Schedule
    last_step: float
    still_sd: float
    moving_sd: float
    top: float | None = None  # an accuracy is this minus the member's value
    raised: float = 0.0  # losses below 0 were raised by this before they were fitted

    def values(self, steps: Floats) -> Floats:
        """One row a member, one column a step."""
        now, found = self._laws(np.array([self.last_step])), self._laws(steps)
        moved = np.abs(np.log(np.maximum(found, _LEAST) / np.maximum(now, _LEAST)))
        sd = np.where(steps > self.last_step, self.still_sd + self.moving_sd * moved, 0.5 * self.still_sd)
        found = found * np.exp(self.error[:, None] * sd)
        return found - self.raised if self.top is None else self.top - np.minimum(found, self.top)

    def _laws(self, steps: Floats) -> Floats:
        whole = self.schedule.progress(np.array([self.last_step]))[0]
        ratio = np.maximum(self.schedule.progress(steps), 1e-6 * whole) / whole
        laws = self.floor[:, None] + self.scale[:, None] * ratio[None, :] ** -self.exponent[:, None]
        so_far = float(self.schedule.annealed(np.array([self.last_step]))[0])
        annealed = self.schedule.annealed(steps)
        seen, to_come = np.minimum(annealed, so_far), np.maximum(annealed - so_far, 0.0)
        return laws * np.exp(-self.drop[:, None] * seen[None, :] - self.next_drop[:, None] * to_come[None, :])


def fit_auto(
    points: Points,
    *,
    schedule: Schedule | None = None,
    total_steps: float | None = None,
    top: float | None = None,
    raised: float = 0.0,
    priors: Priors | None = None,
) -> Curve:
    """`points` are falling and above 0: losses, or `top` minus an accuracy.

    Without a schedule the rate may come down towards the end of the run, if that is known, or not.
    """
    known = priors or shipped()
    noise, level = points.noise(), max(points.level(), _LEAST)
    has_end = total_steps is not None and total_steps > points.last_step
    chance = 1.0 if schedule is not None else known.decay_probability if has_end else 0.0
    rates = schedule or (
        usual_decay(total_steps) if total_steps is not None and has_end else constant(points.last_step)
    )
    end = np.array([max(total_steps or 0.0, points.last_step)])
    if not rates.annealed(end)[0] > _SEEN:
        chance = 0.0
    before = _before_the_drop(points, rates)
    relative = max(before.level(), _LEAST) / (top or 1.0)
    drops, shares = _drops(known.loss if top is None else known.error, before.noise(), relative, chance)
    laws = _weighed(_bins(points, level), rates, drops, shares)
    members, parameters = _members(laws)
    return Curve(
        family="auto",
        members=AnnealedPowers(
            **members,
            schedule=rates,
            last_step=points.last_step,
            still_sd=known.still_sd + known.noise_sd * noise,
            moving_sd=known.moving_sd,
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
    return Bins(bins.steps, np.maximum(bins.values, 1e-3 * level), bins.counts)


def _drops(annealing: Annealing, noise: float, level: float, chance: float) -> tuple[Floats, Floats]:
    """Drops to try and how likely they are: none at all, and those of the prior."""
    tried = np.exp(annealing.log_drop(noise, level) + annealing.log_sd * _DROP_SDS)
    drops, shares = np.r_[0.0, tried], np.r_[1.0 - chance, chance * _DROP_SHARES]
    return drops[shares > 0], shares[shares > 0]


Laws = list[tuple[Shapes, float, float]]  # laws, their drop, and how likely that is


def _weighed(bins: Bins, rates: Schedule, drops: Floats, shares: Floats) -> Laws:
    """Laws through what the points would be at the highest rate; drops that leave points off any law lose weight."""
    progress, annealed = rates.progress(bins.steps), rates.annealed(bins.steps)
    if not (rates.is_known and np.ptp(annealed) > _SEEN):
        laws = fit_shapes(progress, bins.values, bins.counts)
        return [(laws, drop, share) for drop, share in zip(drops.tolist(), shares.tolist(), strict=True)]
    fitted = [fit_shapes(progress, bins.values * np.exp(drop * annealed), bins.counts) for drop in drops]
    evidence = np.array([laws.log_evidence for laws in fitted])
    weights = shares * np.exp(evidence - evidence.max())
    weights /= weights.sum()
    return list(zip(fitted, drops.tolist(), weights.tolist(), strict=True))


def _members(laws: Laws) -> tuple[dict[str, Floats], dict[str, float]]:
    """As many equally likely ones as are drawn from all laws, evenly and always the same; and the likeliest law."""
    weight = np.concatenate([share * shapes.weight for shapes, _, share in laws])
    known = {
        name: np.concatenate([getattr(shapes, name) for shapes, _, _ in laws])
        for name in ("exponent", "floor", "scale")
    }
    known["drop"] = np.concatenate([np.full(len(shapes.weight), drop) for shapes, drop, _ in laws])
    at = (np.arange(_N_MEMBERS) + 0.5) / _N_MEMBERS
    drawn = np.searchsorted(np.cumsum(weight) / weight.sum(), at)
    members = {name: values[drawn] for name, values in known.items()}
    members["next_drop"] = members["drop"] * np.exp(
        _NEXT_LOG_SD * normal_quantiles(spread_out(_N_MEMBERS, math.sqrt(2.0)))
    )
    members["error"] = normal_quantiles(spread_out(_N_MEMBERS, 0.5 * (1.0 + math.sqrt(5.0))))
    return members, {name: float(values[np.argmax(weight)]) for name, values in known.items()}
