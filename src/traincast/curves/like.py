"""A run continued as its siblings went: earlier runs of the same kind, whole ones.

At every share of the run the logarithm of a sibling's value there is a line in the logarithm of its value now. With
slope 1 a run keeps its distance to its siblings, with slope 0 all end at the same value whatever they are now. The
slope is found on the siblings, drawn to one half where they are few, and what they are off the line by is the interval.
Runs are laid over each other by share of their length: the learning rate of all of them comes down at the same share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.curves.curve import Curve
from traincast.curves.normal import normal_quantiles, spread_out
from traincast.curves.points import Points
from traincast.errors import InputError

Floats = NDArray[np.float64]

_N_MEMBERS = 256
_SHARES = 200
_WINDOW = 0.03  # of a run: values are means over so much of it
_USUAL_SLOPE, _SLOPE_SD = 0.5, 0.5
_LEAST_SD = 0.02  # relative: as far as two runs with other seeds are apart
_LONE_SD = 0.25  # relative: of what one sibling tells of another run
_LEAST = 1e-9


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AsSiblings:
    """Members: all along the same line of siblings, each as many standard deviations off as its error says."""

    own: Points
    steps: Floats
    log_values: Floats
    log_sd: Floats
    error: Floats
    top: float | None = None  # an accuracy is this minus the member's value

    def values(self, steps: Floats) -> Floats:
        """One row a member, one column a step."""
        logs = np.interp(steps, self.steps, self.log_values)
        sds = np.interp(steps, self.steps, self.log_sd)
        found = np.exp(logs[None, :] + self.error[:, None] * sds[None, :])
        past = steps <= self.own.last_step
        found[:, past] = np.interp(steps[past], self.own.steps, self.own.values)
        return found if self.top is None else self.top - np.minimum(found, self.top)


def fit_like(points: Points, siblings: Sequence[Points], *, total_steps: float | None, top: float | None) -> Curve:
    """`points` and all siblings are falling and above 0: losses, or `top` minus an accuracy."""
    if total_steps is None:
        raise InputError("Continuing like other runs needs the length of the run: give its steps or epochs.")
    now = min(points.last_step / total_steps, 1.0)
    shares = np.linspace(now, 1.0, _SHARES)
    logs = np.array([_log_values(sibling, np.r_[now, shares] * sibling.last_step) for sibling in siblings])
    own = float(_log_values(points, np.array([points.last_step]))[0])
    centre, sd = _continued(own, logs[:, 0], logs[:, 1:])
    return Curve(
        family="like",
        members=AsSiblings(
            own=points,
            steps=shares * total_steps,
            log_values=centre,
            log_sd=sd,
            error=normal_quantiles(spread_out(_N_MEMBERS, 0.5 * (1.0 + math.sqrt(5.0)))),
            top=top,
        ),
        weights=np.full(_N_MEMBERS, 1.0 / _N_MEMBERS),
        first_step=float(points.steps[0]),
        last_step=points.last_step,
        total_steps=total_steps,
        is_rising=top is not None,
        parameters={"siblings": float(len(siblings))},
        warnings=points.warnings,
    )


def _log_values(points: Points, steps: Floats) -> Floats:
    """Logarithms of means over the window that ends at each step; the last value where the window is empty."""
    sums = np.r_[0.0, np.cumsum(points.values)]
    after = np.maximum(np.searchsorted(points.steps, steps * (1 + 1e-12), side="right"), 1)
    before = np.minimum(np.searchsorted(points.steps, steps - _WINDOW * points.last_step, side="right"), after - 1)
    return np.log(np.maximum((sums[after] - sums[before]) / (after - before), _LEAST))


def _continued(own: float, now: Floats, later: Floats) -> tuple[Floats, Floats]:
    """Where a run that is at `own` will be at every later share, and how sure that is: both of logarithms.

    The slope has a prior, as in a Bayesian regression whose noise is what siblings are apart by.
    """
    n = len(now)
    centred, gained = now - now.mean(), later - later.mean(axis=0)
    spread = np.maximum(later.std(axis=0, ddof=1) if n > 1 else np.full(later.shape[1], _LONE_SD), _LEAST_SD)
    pull = (spread / _SLOPE_SD) ** 2
    slope = (centred @ gained + pull * _USUAL_SLOPE) / (centred @ centred + pull)
    off = gained - centred[:, None] * slope
    residual = np.sqrt((off**2).sum(axis=0) / max(n - 2, 1)) if n > 2 else spread
    slope_sd = np.sqrt(1.0 / (centred @ centred / np.maximum(residual, _LEAST_SD) ** 2 + 1.0 / _SLOPE_SD**2))
    distance = own - float(now.mean())
    sd = np.sqrt(np.maximum(residual, _LEAST_SD) ** 2 * (1.0 + 1.0 / n) + (distance * slope_sd) ** 2)
    # At once a run is where it is; the further on, the more its siblings' lines say.
    return later.mean(axis=0) + slope * distance, sd
