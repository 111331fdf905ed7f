"""Power laws and exponentials above a floor, on a grid: how well each goes through the points, without any search.

    value = floor + scale * (progress / last) ** -exponent
    value = floor + scale * exp(-exponent * (progress / last - 1))

For every exponent and floor of a grid the scale follows by least squares of relative errors, points that are far off
counting less. The grid's likelihoods are a posterior: no start to choose, no local optimum, some milliseconds. Three
windows begin at 5, 20 and 45 % of what was seen, as the first part of a run often follows another law than the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_POWERS = np.geomspace(0.02, 2.5, 26)
_EXPONENTIALS = np.geomspace(0.5, 8.0, 13)
EXPONENTS = np.r_[_POWERS, _EXPONENTIALS]
IS_EXPONENTIAL = np.arange(len(EXPONENTS)) >= len(_POWERS)
_FLOORS = np.array([0.0, 0.3, 0.5, 0.65, 0.78, 0.87, 0.93, 0.97, 0.99])  # of the lowest value in the window
_WINDOWS = ((0.05, 0.2), (0.2, 0.4), (0.45, 0.4))  # where it begins, and how much it counts
_TOLERANCE = 0.004  # relative: no law is better than this
_MOST_POINTS = 25.0  # neighbouring points err together, so more of them tell no more
_USUAL_EXPONENT, _EXPONENT_LOG_SD = 0.3, 1.0
_EXPONENTIAL_SHARE = 1e-4  # a curve that ends on a floor is believed only where it is seen clearly
_ROUNDS = 3
_LEAST_WEIGHT = 1e-4
_LEAST = 1e-6


@dataclass(frozen=True, eq=False, slots=True)
class Shapes:
    """Laws, one entry each: weights sum to 1. `log_evidence` compares them with laws of other data."""

    exponent: Floats
    is_exponential: NDArray[np.bool_]
    floor: Floats
    scale: Floats
    weight: Floats
    log_evidence: float


def falling(ratio: Floats, exponent: Floats, is_exponential: NDArray[np.bool_]) -> Floats:
    """What falls towards 0 and is 1 at the last point: one row a law, one column a ratio of progress to that there."""
    powers = ratio[None, :] ** -exponent[:, None]
    if not is_exponential.any():
        return powers
    return np.where(is_exponential[:, None], np.exp(-exponent[:, None] * (ratio[None, :] - 1.0)), powers)


def _prior() -> Floats:
    """Logarithms of how likely each law is before it is seen, up to one constant."""
    powers = -0.5 * (np.log(_POWERS / _USUAL_EXPONENT) / _EXPONENT_LOG_SD) ** 2
    every = np.log(np.exp(powers).sum() * _EXPONENTIAL_SHARE / (1.0 - _EXPONENTIAL_SHARE) / len(_EXPONENTIALS))
    return np.r_[powers, np.full(len(_EXPONENTIALS), every)]


_PRIOR = _prior()


def fit_shapes(progress: Floats, values: Floats, counts: Floats) -> Shapes:
    """All laws of the grid in all windows, without those that hardly count."""
    ratio = progress / progress[-1]
    found = [_in_window(ratio, values, counts, start) for start, _ in _WINDOWS]
    shares = np.array([share for _, share in _WINDOWS])
    weight = np.concatenate([share * own[3] for (_, share), own in zip(_WINDOWS, found, strict=True)])
    keeps = weight > _LEAST_WEIGHT
    exponent, floor, scale = (np.concatenate([own[part] for own in found])[keeps] for part in range(3))
    is_exponential = np.tile(np.repeat(IS_EXPONENTIAL, len(_FLOORS)), len(_WINDOWS))[keeps]
    evidence = float(shares @ np.array([own[4] for own in found]))
    return Shapes(exponent, is_exponential, floor, scale, weight[keeps] / weight[keeps].sum(), evidence)


def _in_window(
    ratio: Floats, values: Floats, counts: Floats, start: float
) -> tuple[Floats, Floats, Floats, Floats, float]:
    seen = ratio >= start
    if seen.sum() < 4:
        seen = np.arange(len(ratio)) >= len(ratio) - 4
    powers = falling(ratio[seen], EXPONENTS, IS_EXPONENTIAL)
    own, count = values[seen], counts[seen]
    floors = _FLOORS * own.min()
    above = own[None, :] - floors[:, None]
    share = count / count.sum()
    trust = np.broadcast_to(share / own**2, (len(EXPONENTS), len(_FLOORS), len(own)))
    for _ in range(_ROUNDS):
        scale = np.einsum("en,fn,efn->ef", powers, above, trust) / np.einsum("en,efn->ef", powers**2, trust)
        scale = np.maximum(scale, 0.0)
        laws = floors[None, :, None] + scale[:, :, None] * powers[:, None, :]
        off = np.abs(np.log(np.maximum(laws, _LEAST * own) / own))
        usual = 1.48 * _medians(off)[:, :, None] + _TOLERANCE
        trust = share / own**2 / np.maximum(1.0, off / (2.0 * usual))
    near = np.minimum(off, 3.0 * usual)  # farther ones count along a line: a few spikes are borne, a cliff is not
    squares = (near * (2.0 * off - near) * share).sum(axis=2) + _TOLERANCE**2
    n = min(float(len(own)), _MOST_POINTS)
    log_weight = -0.5 * n * np.log(squares) + _PRIOR[:, None]
    highest = float(log_weight.max())
    weight = np.exp(log_weight - highest)
    exponents, all_floors = np.meshgrid(EXPONENTS, floors, indexing="ij")
    total = weight.sum()
    return exponents.ravel(), all_floors.ravel(), scale.ravel(), weight.ravel() / total, highest + float(np.log(total))


def _medians(table: Floats) -> Floats:
    """Along the last axis: NumPy's own looks for numbers that are none first, which takes four times as long."""
    n = table.shape[-1]
    low, high = (n - 1) // 2, n // 2
    parts = np.partition(table, (low, high), axis=-1)
    return np.asarray(0.5 * (parts[..., low] + parts[..., high]))
