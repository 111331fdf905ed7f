"""Of the Optimus law with a given t, loss = a / (t*x + 1 - t) + b2: the best a and b2, in closed form.

Legend: g = (1 - x) / (t*x + 1 - t), so that the law is a + b2 + a*t*g, without cancellation where t is small. All that
is needed of the points are nine sums; z = log(t / (1 - t)). `optimus_solver` searches for z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Lines:
    """The best a and b2, with the squared error, and whether b2 is held at 0."""

    a: Floats
    b2: Floats
    squared_error: Floats
    is_bound: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Valley:
    """The best a and b2 for each of several z, with the squared error, its slope in z and its (Gauss-Newton) bend."""

    z: Floats
    a: Floats
    b2: Floats
    squared_error: Floats
    slope: Floats
    bend: Floats


def shares(z: Floats) -> tuple[Floats, Floats]:
    """t and 1 - t, each exact where the other is near 1."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z)), 1.0 / (1.0 + np.exp(z))


def lines_of(z: Floats, mean: float, sums: tuple[Floats, ...]) -> Lines:
    """From the sums of 1, g, g^2, g^3, g^4 and of y, y*g, y*g^2, y*y."""
    n, g1, g2, _, _, y1, yg, _, yy = sums
    t, _ = shares(z)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = g2 - g1 * g1 / n
        tilt = np.where(spread > 1e-14 * g2, (yg - g1 * y1 / n) / spread, 0.0)
        a = np.where(t > 0, tilt / t, 0.0)
        b2 = mean + (y1 - tilt * g1) / n - a
        h2 = n + 2 * t * g1 + t * t * g2
        alone = np.maximum((mean * (n + t * g1) + y1 + t * yg) / h2, 0.0)
    is_flat = ~(tilt > 0)
    is_bound = ~is_flat & (b2 < 0)
    a = np.where(is_flat, 0.0, np.where(is_bound, alone, a))
    b2 = np.where(is_flat, np.maximum(mean + y1 / n, 0.0), np.where(is_bound, 0.0, b2))
    level, tilt = a + b2 - mean, a * t
    error = yy - 2 * level * y1 - 2 * tilt * yg + level * level * n + 2 * level * tilt * g1 + tilt * tilt * g2
    return Lines(a, b2, np.maximum(error, 0.0), is_bound)


def best_lines(z: Floats, mean: float, sums: tuple[Floats, ...]) -> Valley:
    """The same with slope and bend."""
    n, g1, g2, g3, g4, _, yg, ygg, _ = sums
    lines = lines_of(z, mean, sums)
    t, s = shares(z)
    level, tilt = lines.a + lines.b2 - mean, lines.a * t
    slope = -2 * tilt * s * ((yg - level * g1 - tilt * g2) + t * (ygg - level * g2 - tilt * g3))
    # How fast the slope changes, had the curve no bend of its own: what a change of z does that a and b2 can't undo.
    vv, v1, vg = g2 + 2 * t * g3 + t * t * g4, g1 + t * g2, g2 + t * g3
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread, h2 = g2 - g1 * g1 / n, n + 2 * t * g1 + t * t * g2
        free = vv - v1 * v1 / n - np.where(spread > 0, (vg - g1 * v1 / n) ** 2 / spread, 0.0)
        bound = vv - (v1 + t * vg) ** 2 / h2
    bend = 2 * (tilt * s) ** 2 * np.maximum(np.where(lines.is_bound, bound, free), 0.0)
    return Valley(z, lines.a, lines.b2, lines.squared_error, slope, bend)
