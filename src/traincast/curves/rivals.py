"""The simplest forecasts of a curve: it stays where it is, it follows Optimus' law, its late trend goes on.

Laws of many shapes are weighed against them by how each would have done on the run's own past (`weighed.py`). They are
cheap: shapes on a grid, the rest by least squares. Values fall and are above 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from traincast.curves.points import FEWEST, Points

Floats = NDArray[np.float64]
Forecast = Callable[[Floats], Floats]

_OFFSETS = np.r_[0.0, np.geomspace(1e-3, 30.0, 40)]  # b1 / b0 of Optimus' law, in what was seen of the run
_LEAST_RATIO = 1e-6
_LATE = 0.5  # of what was seen: the trend is of the second half
_MOST = 60  # points that a trend is taken from
_LEAST_GAP = 0.1  # of the late half, in logarithms: closer pairs tell of their noise
_LEAST = 1e-12


def stays(points: Points) -> Forecast:
    """The median of the last eighth, from now on."""
    return lambda steps: np.full(np.shape(steps), points.level())


def optimus_law(points: Points) -> Forecast:
    """scale / (step + offset) + floor, by least squares; neither scale nor floor is below 0."""
    ratio, values = points.steps / points.last_step, points.values
    shapes = 1.0 / (ratio[None, :] + _OFFSETS[:, None] + _LEAST_RATIO)
    scale, floor, squares = _lines(shapes, values)
    best = int(np.argmin(squares))
    offset = _OFFSETS[best] + _LEAST_RATIO
    return lambda steps: floor[best] + scale[best] / (np.asarray(steps) / points.last_step + offset)


def _lines(shapes: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each row of shapes: scale, floor and sum of squares of the best line without negative parts."""
    unit = float(np.abs(values).max())
    values = values / unit
    mean = shapes.mean(axis=1)
    around = shapes - mean[:, None]
    scale = np.maximum((around * values).sum(axis=1) / np.maximum((around**2).sum(axis=1), _LEAST), 0.0)
    floor = values.mean() - scale * mean
    without = (shapes * values).sum(axis=1) / (shapes**2).sum(axis=1)
    scale, floor = np.where(floor < 0, np.maximum(without, 0.0), scale), np.maximum(floor, 0.0)
    squares = ((floor[:, None] + scale[:, None] * shapes - values) ** 2).sum(axis=1)
    return scale * unit, floor * unit, squares


def trend(points: Points) -> Forecast:
    """The median slope of logarithms over the second half goes on: it may rise, as a loss does that overfits."""
    late = points.steps >= _LATE * points.last_step
    if late.sum() < FEWEST:
        late = np.arange(len(points.steps)) >= len(points.steps) - FEWEST
    late &= points.steps > 0
    stride = 1 + int(late.sum()) // _MOST
    place = np.log(points.steps[late] / points.last_step)[::-stride]
    value = np.log(np.maximum(points.values[late], _LEAST))[::-stride]
    first, second = np.triu_indices(len(place), 1)
    gap = place[first] - place[second]
    is_far = gap > _LEAST_GAP * (place[0] - place[-1])
    slopes = (value[first] - value[second])[is_far] / gap[is_far]
    slope = float(np.median(slopes)) if len(slopes) else 0.0
    now = float(np.median(value - slope * place))
    return lambda steps: np.exp(now + slope * np.log(np.maximum(steps, _LEAST) / points.last_step))
