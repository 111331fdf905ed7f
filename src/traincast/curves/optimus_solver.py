"""Least squares for the Optimus law, loss = 1/(b0*k + b1) + b2 with b0, b1, b2 >= 0: exact, global and in few passes.

Divide the steps by the last one (x = k/K). With t = b0*K / (b0*K + b1) and a = 1 / (b0*K + b1) the law reads

    loss = a / (t*x + 1 - t) + b2,    0 <= t <= 1

For a given t it is a straight line in a and b2, whose best values (at least 0) are known in closed form. What is left
is a search in one dimension: over z = log(t / (1 - t)) = log(b0*K / b1), from "constant" (-inf) to "1/k" (+inf). A grid
on a few hundred bins finds the valleys, a root of the derivative on all points finds their bottoms.

The closed form is in `optimus_lines`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traincast.curves.optimus_lines import Floats, Lines, Valley, best_lines, lines_of, shares

_CHUNK = 8_192  # points a pass holds at once: they stay in the cache, and BLAS does them without waking its threads
MOST_BINS = 128
_LOGS_AT_ONCE = 64
_FLATTEST_Z = -14.0  # the curve falls by a millionth over the log
_BEYOND_FIRST = 9.0  # past the place where nearly all of the fall happens before the first step
_Z_SPACING = 0.3
_NO_STEP = 1e-12  # of the last step: as good as step 0, and its powers stay numbers
_MOST_VALLEYS = 3
_HOPELESS = 2.0  # times the least squared error of the bins: all points would not turn that
_Z_SETTLED = 1e-12  # parameters have eleven digits that do not depend on the machine
_ROUNDING = 1e-11  # of the squared error: sums of ten thousand points know no more
_LARGEST = float(np.finfo(float).max)  # stands for 1/0, so that every parameter is a number


@dataclass(frozen=True, eq=False, slots=True)
class ScaledPoints:
    """Sorted by step; steps from 0 to 1, losses about their mean and divided by the largest of them."""

    x: Floats
    y: Floats
    mean: float
    step_unit: float
    loss_unit: float


@dataclass(frozen=True, eq=False, slots=True)
class MeanBins:
    """Means of neighbouring points, and how many points each stands for."""

    means: ScaledPoints
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimusFit:
    """The law's parameters in the units of the log. `z` and `a` are those of the search."""

    b0: float
    b1: float
    b2: float
    z: float
    a: float


def scaled_points(steps: Floats, losses: Floats) -> ScaledPoints:
    """Of sorted, finite points."""
    step_unit = float(steps[-1]) or 1.0
    loss_unit = float(max(losses.max(), -losses.min())) or 1.0
    y = losses / loss_unit
    mean = float(y.mean())
    y -= mean
    x = steps / step_unit
    x[: np.searchsorted(x, _NO_STEP)] = 0.0
    return ScaledPoints(x, y, mean, step_unit, loss_unit)


def in_bins(points: ScaledPoints, values: Floats) -> MeanBins:
    """The means of the values in bins that are narrow at the start, where the curve is steep, and even further on."""
    x = points.x
    if len(x) <= MOST_BINS:
        return MeanBins(replace(points, y=values), np.ones(len(x)))
    positive = x[np.searchsorted(x, 0.0, side="right") :]
    half = MOST_BINS // 2
    edges = np.concatenate(
        (np.geomspace(positive[0] if len(positive) else 1.0, 1.0, half), np.linspace(0.0, 1.0, half))
    )
    places = np.union1d(np.searchsorted(x, edges), 0)
    starts = places[places < len(x)]
    counts = np.diff(starts, append=len(x)).astype(float)
    means = [np.add.reduceat(column, starts) / counts for column in (x, values)]
    return MeanBins(replace(points, x=means[0], y=means[1]), counts)


def z_range(points: ScaledPoints) -> tuple[float, float]:
    """Outside of it the curve does not change any more at the logged steps."""
    positive = points.x[np.searchsorted(points.x, 0.0, side="right") :]
    first = float(positive[0]) if len(positive) else 1.0
    return _FLATTEST_Z, float(-np.log(first)) + _BEYOND_FIRST


def least_squares(steps: Floats, losses: Floats) -> OptimusFit:
    """The plain fit to finite points, all alike: what SciPy's bounded `curve_fit` looks for."""
    return solve(scaled_points(*in_order(steps, losses)))


def in_order(steps: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Of steps; points at the same step stay in theirs."""
    if not (steps[1:] < steps[:-1]).any():
        return steps, losses
    order = np.argsort(steps, kind="stable")
    return steps[order], losses[order]


def valley(points: ScaledPoints, z: float) -> Valley:
    """At one z: one pass over all points."""
    return best_lines(np.array([z]), points.mean, _point_sums(points, z))


def valleys(bins: MeanBins, z: Floats, y: Floats) -> Valley:
    """For each z (rows) and each of several logs (columns), given as rows of y over the same bins."""
    g = _bent(bins, z)
    return best_lines(z[:, None], bins.means.mean, (*_powers(bins, g), *_log_sums(bins, g, y)))


def errors_of(bins: MeanBins, z: Floats, y: Floats) -> Floats:
    """Squared errors of the same, some logs at a time: these stay in the cache, and BLAS does not wake its threads."""
    g = _bent(bins, z)
    powers = _powers(bins, g)
    parts = (y[start : start + _LOGS_AT_ONCE] for start in range(0, len(y), _LOGS_AT_ONCE))
    lines = (lines_of(z[:, None], bins.means.mean, (*powers, *_log_sums(bins, g, part))) for part in parts)
    return np.concatenate([line.squared_error for line in lines], axis=1)


def own_lines(bins: MeanBins, z: Floats, y: Floats) -> Lines:
    """For each log its own z."""
    g = _bent(bins, z)
    totals = (
        np.einsum(f"{'ij,' * len(factors)}j->i", *factors, bins.weights)[:, None]
        for factors in ((y,), (g, y), (g * g, y), (y, y))
    )
    return lines_of(z[:, None], bins.means.mean, (*_powers(bins, g), *totals))


def _log_sums(bins: MeanBins, g: Floats, y: Floats) -> tuple[Floats, ...]:
    """Sums of y, y*g, y*g^2 and y*y, a column a log."""
    weighted = (y * bins.weights).T
    return weighted.sum(axis=0), g @ weighted, (g * g) @ weighted, np.einsum("ij,ji->i", y, weighted)


def solve(points: ScaledPoints) -> OptimusFit:
    """The global optimum."""
    bins = in_bins(points, points.y)
    starts, least = _valley_starts(bins, *z_range(points))
    found = [_bottom(points, *start) for start in starts]
    # b1 = 0, the law 1/k, is the far end of z; a point at step 0 forbids it.
    if points.x[0] > 0 and _errors(bins, np.array([np.inf]))[0] <= _HOPELESS * least:
        found.append(valley(points, np.inf))
    best = min(found, key=lambda each: float(each.squared_error[0]))
    return _in_log_units(points, best)


def _in_log_units(points: ScaledPoints, best: Valley) -> OptimusFit:
    a, b2, z = float(best.a[0]), float(best.b2[0]), float(best.z[0])
    if a == 0.0:  # no fall helps: the mean as a constant, which the law writes as 1/b1
        a, b2, z = b2, 0.0, -np.inf
    t, s = (float(share[0]) for share in shares(np.array([z])))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        free = np.array([t / points.step_unit, s]) / a / points.loss_unit
    b0, b1 = (0.0 if share == 0.0 else min(float(b), _LARGEST) for share, b in zip((t, s), free, strict=True))
    return OptimusFit(b0=b0, b1=b1, b2=b2 * points.loss_unit, z=z, a=a)


def _bent(bins: MeanBins, z: Floats) -> Floats:
    """g, one row a z."""
    t, s = shares(z)
    x = bins.means.x
    return np.asarray((1.0 - x) / (t[:, None] * x + s[:, None]))


def _powers(bins: MeanBins, g: Floats) -> tuple[Floats, ...]:
    """Sums of 1, g, g^2, g^3 and g^4, a column each."""
    squared = g * g
    rows = (np.ones_like(g), g, squared, squared * g, squared * squared)
    return tuple((row @ bins.weights)[:, None] for row in rows)


def _errors(bins: MeanBins, z: Floats) -> Floats:
    return errors_of(bins, z, bins.means.y[None])[:, 0]


def _point_sums(points: ScaledPoints, z: float) -> tuple[Floats, ...]:
    """As of one bin a point, chunk by chunk."""
    t, s = (float(share[0]) for share in shares(np.array([z])))
    n_points = len(points.x)
    below, g, squared = np.empty((3, min(_CHUNK, n_points)))
    ones = np.ones_like(g)
    total = np.zeros(9)
    for start in range(0, n_points, _CHUNK):
        x, y = points.x[start : start + _CHUNK], points.y[start : start + _CHUNK]
        n = len(x)
        if n < len(g):
            below, g, squared, ones = below[:n], g[:n], squared[:n], ones[:n]
        np.multiply(x, t, out=below)
        below += s
        np.subtract(1.0, x, out=g)
        g /= below
        np.multiply(g, g, out=squared)
        products = (g @ ones, g @ g, g @ squared, squared @ squared, y @ ones, y @ g, y @ squared, y @ y)
        total += np.array([n, *products], float)
    return tuple(total[:, None])


def _valley_starts(bins: MeanBins, low: float, high: float) -> tuple[list[tuple[float, float, float]], float]:
    """(left, start, right) of the deepest valleys, each narrowed on the bins, and the squared error of the deepest."""
    grid = np.linspace(low, high, int(min((high - low) / _Z_SPACING, 1000)) + 2)
    errors = _errors(bins, grid)
    padded = np.concatenate(([np.inf], errors, [np.inf]))
    places = np.flatnonzero((padded[1:-1] <= padded[:-2]) & (padded[1:-1] < padded[2:]))
    if not len(places):
        places = np.array([int(np.argmin(errors))])
    starts = []
    for place in places[np.argsort(errors[places], kind="stable")][:_MOST_VALLEYS]:
        left, right = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
        near = np.linspace(left, right, 33)
        deep = _errors(bins, near)
        starts.append((float(deep.min()), (float(left), float(near[np.argmin(deep)]), float(right))))
    least = min(depth for depth, _ in starts)
    return [start for depth, start in starts if depth <= _HOPELESS * least], least


def _bottom(points: ScaledPoints, left: float, start: float, right: float) -> Valley:
    """Where the slope is 0 on all points: Gauss-Newton once, secants after it, halving where they leave the bracket."""
    here = valley(points, start)
    best, before = here, None
    for _ in range(60):
        z, slope = float(here.z[0]), float(here.slope[0])
        if slope > 0:
            right = z
        else:
            left = z
        bend = float(here.bend[0])
        if before is not None and slope != before[1]:
            bend = (slope - before[1]) / (z - before[0])
        change = -slope / bend if bend > 0 else 0.0
        following = z + change
        if bend <= 0 or not left <= following <= right:
            following = 0.5 * (left + right)
        before = (z, slope)
        if abs(following - z) < _Z_SETTLED:
            break
        here = valley(points, following)
        if _is_deeper(here, best):
            best = here
    return best


def _is_deeper(here: Valley, best: Valley) -> bool:
    """At the bottom the error is flat, and what rounds it differs between machines: there the slope decides."""
    error, least = float(here.squared_error[0]), float(best.squared_error[0])
    if abs(error - least) > _ROUNDING * least:
        return error < least
    return abs(float(here.slope[0])) <= abs(float(best.slope[0]))
