"""Optimus curves that all fit a log, with the spread that its noise leaves open.

Each member is the best curve through the log with its noise shaken: what a bin of neighbouring points was off by, times
a random number (a wild bootstrap). So noise may differ along the curve, as that of losses does, and a parameter near
its bound gets the one-sided spread that it has. The draws are the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from traincast.curves.optimus_lines import Floats, shares
from traincast.curves.optimus_solver import (
    MOST_BINS,
    MeanBins,
    OptimusFit,
    ScaledPoints,
    errors_of,
    in_bins,
    own_lines,
    valleys,
    z_range,
)

_N_MEMBERS = 256
_N_PROFILE = 81
_LEAST_REST = 0.2  # of a bin's noise shows in its residual, however closely the curve follows that bin
_N_BLOCKS = 64
_STRONGEST_LAG = 0.95


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class OptimusMembers:
    """One curve a row. `covariance` is that of b0, b1 and b2 about the best fit, infinite where it is singular."""

    b0: Floats
    b1: Floats
    b2: Floats
    covariance: Floats
    n_effective: float  # independent points that hold as much as the log

    def values(self, steps: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return 1.0 / (self.b0[:, None] * steps + self.b1[:, None]) + self.b2[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How much a log is worth: `variance` is that of one of its points, were they independent."""

    n_effective: float
    variance: float
    is_even: bool  # the residuals do not tell where the noise is


def fitted(points: ScaledPoints, fit: OptimusFit) -> Floats:
    """The best curve at the points, in the unit of their losses and about their mean."""
    t, s = (float(share[0]) for share in shares(np.array([fit.z])))
    curve = t * points.x
    curve += s
    np.divide(fit.a, curve, out=curve)
    curve += fit.b2 / points.loss_unit - points.mean
    return curve


def effective_points(residuals: Floats) -> float:
    """How many independent residuals would average out as these do.

    Neighbouring losses err together (the same weights, and a law that is not quite theirs). Means of blocks show how
    much of the noise stays, and the correlation of neighbouring blocks how much stays beyond that.
    """
    n_points = len(residuals)
    power = float(residuals @ residuals)
    if power == 0.0:
        return float(n_points)
    size = max(n_points // _N_BLOCKS, 1)
    n_blocks = n_points // size
    means = residuals[: n_blocks * size].reshape(n_blocks, size).mean(axis=1)
    block_power = float(means @ means)
    if block_power == 0.0:
        return float(n_points)
    lag = min(max(float(means[1:] @ means[:-1]) / block_power, 0.0), _STRONGEST_LAG)
    inflation = size * (block_power / n_blocks) / (power / n_points) * (1 + lag) / (1 - lag)
    return min(max(n_points / inflation, 1.0), float(n_points))


def curvature(points: ScaledPoints, fit: OptimusFit) -> Floats:
    """Sums of products of the law's derivatives, by b0*K, b1 and b2 in the unit of the losses."""
    bins = in_bins(points, points.x)
    t, s = (float(share[0]) for share in shares(np.array([fit.z])))
    squared = (fit.a / (t * bins.means.x + s)) ** 2
    columns = np.stack((-bins.means.x * squared, -squared, np.ones_like(squared)))
    return np.asarray((columns * bins.weights) @ columns.T)


def covariance_of(points: ScaledPoints, products: Floats, variance: float, fit: OptimusFit) -> Floats:
    """Of b0, b1 and b2; a parameter at its bound is taken as known."""
    found = np.zeros((3, 3))
    free = np.flatnonzero([fit.b0 > 0, fit.b1 > 0, fit.b2 > 0])
    if is_singular(products[np.ix_(free, free)]):
        return np.full((3, 3), np.inf)
    found[np.ix_(free, free)] = variance * np.linalg.inv(products[np.ix_(free, free)])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        inverse = 1.0 / points.loss_unit
        unit = np.array([inverse / points.step_unit, inverse, points.loss_unit])
        return np.asarray(found * unit[:, None] * unit)


def is_singular(products: Floats) -> bool:
    """Two parameters do the same to the curve at all logged steps."""
    size = np.sqrt(np.diag(products))
    if not np.isfinite(products).all() or not size.all():
        return True
    return bool(np.linalg.cond(products / size[:, None] / size) > 1e12)


def draw_members(
    points: ScaledPoints, fit: OptimusFit, residuals: Floats, *, trust: Trust, covariance: Floats
) -> OptimusMembers:
    bins = in_bins(points, residuals)
    middle = fitted(bins.means, fit) + bins.means.y
    shaken = middle + _bin_noise(bins, fit, trust) * _multipliers()[:, : len(middle)]
    z = _drawn_z(bins, fit, shaken, trust)
    lines = own_lines(bins, z, shaken)
    a, b2 = lines.a[:, 0], lines.b2[:, 0]
    t, s = shares(z)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        b0 = np.where(a > 0, t / a / points.loss_unit / points.step_unit, 0.0)
        b1 = np.where(a > 0, s / a / points.loss_unit, np.inf)
        b2 = np.minimum(b2 * points.loss_unit, np.finfo(float).max)
    return OptimusMembers(b0=b0, b1=b1, b2=b2, covariance=covariance, n_effective=trust.n_effective)


def _bin_noise(bins: MeanBins, fit: OptimusFit, trust: Trust) -> Floats:
    """A standard deviation for each bin's mean, so that all together they weigh what `trust` says."""
    sums = bins.weights * bins.means.y
    power = float(sums @ sums)
    if trust.is_even or power == 0.0:
        return np.asarray(np.sqrt(trust.variance / bins.weights))
    wanted = trust.variance * float(bins.weights.sum())
    return np.asarray(np.abs(bins.means.y) / (1.0 - _leverage(bins, fit)) * np.sqrt(wanted / power))


def _leverage(bins: MeanBins, fit: OptimusFit) -> Floats:
    """How far the curve bends to follow each bin: its residual is smaller than its noise by that share."""
    t, s = (float(share[0]) for share in shares(np.array([fit.z])))
    g = (1.0 - bins.means.x) / (t * bins.means.x + s)
    columns = np.stack((np.ones_like(g), g, g + t * g * g), axis=1) * np.sqrt(bins.weights)[:, None]
    basis = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[0]
    return np.asarray(np.minimum((basis * basis).sum(axis=1), 1.0 - _LEAST_REST))


def _drawn_z(bins: MeanBins, fit: OptimusFit, shaken: Floats, trust: Trust) -> Floats:
    """Of each shaken log the best z: on a grid that is fine about the best fit's and reaches everywhere."""
    grid = _z_grid(bins, fit, trust)
    errors = errors_of(bins, grid, shaken)
    place = np.clip(np.argmin(errors, axis=0), 1, len(grid) - 2)
    rows = np.arange(len(shaken))
    left, here, right = (errors[place + side, rows] for side in (-1, 0, 1))
    before, after = grid[place] - grid[place - 1], grid[place + 1] - grid[place]
    fall, rise = (here - left) / before, (right - here) / after
    with np.errstate(divide="ignore", invalid="ignore"):  # the bottom of the parabola through three neighbours
        shift = -0.5 * (fall * after + rise * before) / (rise - fall)
    shift = np.where((rise > fall) & np.isfinite(shift), shift, np.where(left < right, -before, after))
    return np.asarray(grid[place] + np.clip(shift, -before, after))


def _z_grid(bins: MeanBins, fit: OptimusFit, trust: Trust) -> Floats:
    low, high = z_range(bins.means)
    width, centre = high - low, float(np.clip(fit.z, low, high))
    bend = float(valleys(bins, np.array([centre]), fitted(bins.means, fit)[None]).bend[0, 0])
    deviation = max(min(float(np.sqrt(2 * trust.variance / bend)), width), 1e-12 * width) if bend > 0 else width
    reach = np.arcsinh(width / deviation)
    return np.unique(np.clip(centre + deviation * np.sinh(np.linspace(-reach, reach, _N_PROFILE)), low, high))


@cache
def _multipliers() -> Floats:
    """Standard normal numbers, a row a member; the opposite of each row too, so members lie about the best fit."""
    half = np.random.default_rng(2018).standard_normal((_N_MEMBERS // 2, 2 * MOST_BINS))
    return np.concatenate((half, -half))
