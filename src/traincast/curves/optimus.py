"""The learning curve of Optimus (Peng et al., EuroSys 2018): loss = 1/(b0*k + b1) + b2, no parameter below 0.

`fit_optimus` leaves out outliers, normalises and fits; `least_squares` of `optimus_solver` is the plain fit to all
points. docs/optimus_curve.md says what the authors do and what we do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traincast.curves.curve import Curve
from traincast.curves.optimus_members import (
    OptimusMembers,
    Trust,
    covariance_of,
    curvature,
    draw_members,
    effective_points,
    fitted,
)
from traincast.curves.optimus_outliers import far_from_neighbours
from traincast.curves.optimus_solver import OptimusFit, ScaledPoints, scaled_points, solve
from traincast.curves.optimus_trouble import find_trouble
from traincast.curves.points import Points, clean
from traincast.logs.counting import of_all

_N_UNTRUSTED = 4.0  # points that a degenerate fit counts for
_BOUND_SHARE = 0.25  # of the points still count where b2 = 0: twice the interval
_ROUNDING = 1e-14  # of the squared losses: a squared error below it is one of arithmetic
_LEAST_NOISE = 0.1  # of the losses: a curve whose fall the log does not show is uncertain by at least that


def fit_optimus(steps: ArrayLike, losses: ArrayLike, *, total_steps: float | None = None) -> Curve:
    """The curve with its spread. A degenerate fit predicts too, with a warning and a wide interval."""
    return fit_points(clean(steps, losses), total_steps=total_steps)


def fit_points(logged: Points, *, total_steps: float | None = None) -> Curve:
    """The same of points that are in order."""
    steps, losses, warnings = logged.steps, logged.values, list(logged.warnings)
    far = np.flatnonzero(far_from_neighbours(losses))
    if len(far):
        many = of_all(
            len(far),
            len(steps),
            "points",
            "lies far from its neighbours and was",
            "lie far from their neighbours and were",
        )
        warnings.append(f"{many} left out.")
        steps, losses = np.delete(steps, far), np.delete(losses, far)
    points = scaled_points(steps, losses)
    fit = solve(points)
    members, sentences = _with_spread(points, fit)
    return Curve(
        family="optimus",
        members=members,
        weights=np.full(len(members.b0), 1.0 / len(members.b0)),
        first_step=float(logged.steps[0]),
        last_step=logged.last_step or 1.0,
        total_steps=total_steps,
        parameters={"b0": fit.b0, "b1": fit.b1, "b2": fit.b2},
        warnings=(*warnings, *sentences),
    )


def _with_spread(points: ScaledPoints, fit: OptimusFit) -> tuple[OptimusMembers, tuple[str, ...]]:
    residuals = fitted(points, fit)
    np.subtract(points.y, residuals, out=residuals)  # new memory would cost more than the difference
    products = curvature(points, fit)
    squared_error, n_effective = float(residuals @ residuals), effective_points(residuals)
    squared_error = max(squared_error, _ROUNDING * len(residuals))
    gain = (float(points.y @ points.y) - squared_error) / squared_error * max(n_effective - 3.0, 1.0)
    trouble = find_trouble(points, fit, products, gain)
    if trouble.has_no_fall:
        squared_error = max(squared_error, _LEAST_NOISE**2 * float(np.sum((points.y + points.mean) ** 2)))
    if trouble.is_degenerate:
        n_effective = min(n_effective, _N_UNTRUSTED)
    elif trouble.sentences:
        n_effective = max(_BOUND_SHARE * n_effective, _N_UNTRUSTED)
    variance = squared_error / max(n_effective - 3.0, 1.0)
    trust = Trust(n_effective=n_effective, variance=variance, is_even=trouble.is_degenerate)
    covariance = covariance_of(points, products, variance, fit)
    members = draw_members(points, fit, residuals, trust=trust, covariance=covariance)
    return members, trouble.sentences
