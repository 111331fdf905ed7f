"""A run whose learning rate nobody tells: its laws go on, weighed against the simplest forecasts.

    value = laws^w1 * Optimus^w2 * trend^w3 * now^w4 * exp(-fall)

The weights come from the run's own past: each forecast is made again from earlier cuts, and the one that was nearer to
what came then counts more. No fall of the learning rate is assumed. `fall` is by how much runs of other sources ended
below their laws, in the median: little for losses, more for a share of errors that jumps about from one evaluation to
the next, which the noise of a high rate holds up (`unknown_rate.py`). How far runs were off it is the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.curves.normal import normal_quantiles, spread_out
from traincast.curves.points import FEWEST, Bins, Points, binned
from traincast.curves.rivals import optimus_law, stays, trend
from traincast.curves.shapes import Shapes, falling, fit_shapes
from traincast.curves.unknown_rate import UnknownRate
from traincast.lognormal import P90_SDS

Floats = NDArray[np.float64]

N_MEMBERS = 512
_N_LAWS = 256
_LEAST = 1e-9
_FURTHEST = 100.0  # times the last step, where no end is known
_KNOTS = 48
# Laws, Optimus, trend, as it is: taken, not fitted, and what it would take for another to count more.
_USUAL_SHARES = np.array([0.8, 0.06, 0.08, 0.06])
_TRUST = 2.0  # power of the error on earlier cuts, once there are all of them
_BACK = (2.5, 1.6, 1.25)  # earlier cuts: what was seen since is so many times as long
_LEAST_ERROR = 0.005  # relative, for each power of e of steps: nobody errs less
_MOST_ERROR = 2.0
_NEAR = math.log(1.25)
_STILL_SD, _MOVING_SD, _NOISE_SD = 0.004, 0.05, 0.3


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Fan:
    """Members along one path, each as many standard deviations above or below it as its error says."""

    knots: Floats
    log_path: Floats
    log_sd_below: Floats
    log_sd_above: Floats
    error: Floats
    top: float | None = None  # an accuracy is this minus the member's value
    raised: float = 0.0  # losses below 0 were raised by this before they were fitted
    fall: float = 0.0  # of the logarithm at the end, that is in the path
    drop: float = 0.0  # that it would be if the learning rate came down to zero

    def values(self, steps: Floats) -> Floats:
        """One row a member, one column a step."""
        path, below, above = (
            np.interp(steps, self.knots, values) for values in (self.log_path, self.log_sd_below, self.log_sd_above)
        )
        error = self.error[:, None]
        values = np.exp(path + error * np.where(error < 0, below, above))
        return values - self.raised if self.top is None else self.top - np.minimum(values, self.top)


@dataclass(frozen=True, eq=False, slots=True)
class Laws:
    """Equally likely laws through points, and what no law knows."""

    exponent: Floats
    is_exponential: NDArray[np.bool_]
    floor: Floats
    scale: Floats
    last_step: float
    still_sd: float

    def at(self, steps: Floats) -> tuple[Floats, Floats]:
        """The median, and the standard deviation of its logarithm."""
        ratio = np.maximum(steps, 1e-6 * self.last_step) / self.last_step
        laws = self.floor[:, None] + self.scale[:, None] * falling(ratio, self.exponent, self.is_exponential)
        ranked = np.sort(np.maximum(laws, _LEAST), axis=0)
        low, middle, high = (ranked[round(level * (len(ranked) - 1))] for level in (0.1, 0.5, 0.9))
        now = max(float(np.median(self.floor + self.scale)), _LEAST)
        unknown = self.still_sd + _MOVING_SD * np.abs(np.log(middle / now))
        return middle, np.hypot(np.log(high / low) / (2.0 * P90_SDS), unknown)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Outlook:
    """What is known of a run before other runs are asked: its weighed path, and what its error is told by."""

    points: Points
    laws: Laws
    weights: Floats  # of the laws, Optimus' law, the trend and the value of now
    noise: float

    @property
    def now(self) -> float:
        """The logarithm of where the curve is."""
        return math.log(max(self.points.level(), _LEAST))

    def path(self, steps: Floats) -> Floats:
        """Logarithms: until now those of the laws, then the weighed mean of all."""
        own, later = np.log(self.laws.at(steps)[0]), steps > self.points.last_step
        log_highest = math.log(float(self.points.values.max()))
        own[~later] = np.minimum(own[~later], log_highest)
        if later.any():
            simple = [np.log(np.maximum(law(steps[later]), _LEAST)) for law in _simple(self.points)]
            own[later] = self.weights @ np.array([own[later], *simple])
        return own


def outlook_of(points: Points) -> Outlook:
    """`points` fall and are above 0."""
    return Outlook(points=points, laws=laws_of(points), weights=weights_of(points), noise=points.noise())


def laws_of(points: Points) -> Laws:
    bins = _clipped(points)
    shapes = fit_shapes(bins.steps, bins.values, bins.counts)
    at = (np.arange(_N_LAWS) + 0.5) / _N_LAWS
    drawn = np.searchsorted(np.cumsum(shapes.weight) / shapes.weight.sum(), at)
    return _drawn(shapes, np.minimum(drawn, len(shapes.weight) - 1), points)


def _drawn(shapes: Shapes, drawn: NDArray[np.int64], points: Points) -> Laws:
    return Laws(
        shapes.exponent[drawn],
        shapes.is_exponential[drawn],
        shapes.floor[drawn],
        shapes.scale[drawn],
        points.last_step,
        _STILL_SD + _NOISE_SD * points.noise(),
    )


def _clipped(points: Points) -> Bins:
    level = max(points.level(), _LEAST)
    bins = binned(points)
    return Bins(bins.steps, np.clip(bins.values, 1e-3 * level, 1e12 * level), bins.counts)


def weights_of(points: Points) -> Floats:
    """By the errors of each forecast from earlier cuts, for the value of now."""
    now, place = math.log(max(points.level(), _LEAST)), np.array([points.last_step])
    errors = []
    for times in _BACK:
        seen = points.steps <= points.last_step / times
        if seen.sum() < FEWEST or points.steps[seen][-1] <= 0:
            continue
        past = Points(points.steps[seen], points.values[seen])
        forecasts = [laws_of(past).at(place)[0], *(law(place) for law in _simple(past))]
        off = np.abs(np.log(np.maximum(np.ravel(forecasts), _LEAST)) - now)
        errors.append(np.minimum(off, _MOST_ERROR) / math.log(points.last_step / past.last_step))
    if not errors:
        return _USUAL_SHARES
    usual = np.sqrt(np.mean(np.square(errors), axis=0)) + _LEAST_ERROR + 0.5 * points.noise()
    weights = _USUAL_SHARES * (usual / usual.min()) ** (-_TRUST * len(errors) / len(_BACK))
    return np.asarray(weights / weights.sum())


def _simple(points: Points) -> tuple:  # type: ignore[type-arg]
    return optimus_law(points), trend(points), stays(points)


def fan_of(outlook: Outlook, told: UnknownRate, *, total_steps: float | None, is_error: bool) -> Fan:
    """The path with what other runs tell of its end, and of how far it may be off."""
    last = outlook.points.last_step
    knots = _knots(outlook.points, total_steps)
    path, sd = outlook.path(knots), outlook.laws.at(knots)[1]
    later = knots > last
    below, above = (np.full(len(knots), 0.5 * outlook.laws.still_sd) for _ in range(2))
    horizon = np.log(knots[later] / last)
    near = np.sqrt(np.minimum(horizon / _NEAR, 1.0))  # nearer than the fit has seen an end
    below[later] = np.maximum(near * told.below.sd(sd[later], outlook.noise, horizon), below[later])
    above[later] = np.maximum(near * told.above.sd(sd[later], outlook.noise, horizon), above[later])
    end = total_steps if total_steps is not None and total_steps > last else knots[-1]
    at_end = float(np.interp(end, knots, path))
    fall = told.fall(outlook.noise, to_come=1.0 - last / end, moves=at_end - outlook.now, is_error=is_error)
    if total_steps is None and not is_error:
        fall = 0.0  # it may go on for ever
    path[later] -= fall * _share_of_fall(knots[later], last, total_steps)
    return Fan(
        knots=knots,
        log_path=path,
        log_sd_below=below,
        log_sd_above=above,
        error=normal_quantiles(spread_out(N_MEMBERS, 0.5 * (1.0 + math.sqrt(5.0)))),
        fall=fall,
    )


def _share_of_fall(steps: Floats, last: float, total_steps: float | None) -> Floats:
    """Runs anneal late; where no end is known, half of it has come when as much was seen again."""
    if total_steps is None or total_steps <= last:
        return 1.0 - last / steps
    return np.asarray(np.minimum((steps - last) / (total_steps - last), 1.0) ** 1.5)


def _knots(points: Points, total_steps: float | None) -> Floats:
    last = points.last_step
    first = max(float(points.steps[0]), 1e-4 * last)
    past = np.geomspace(first, last, _KNOTS)
    end = total_steps if total_steps is not None and total_steps > last else _FURTHEST * last
    if total_steps is None:
        return np.r_[past, np.geomspace(last, end, 2 * _KNOTS)[1:]]
    # Beyond the end, which a log may pass, and which targets are sought up to.
    return np.unique(np.r_[past, np.linspace(last, end, _KNOTS)[1:], np.geomspace(last, end, _KNOTS)[1:], 2.0 * end])
