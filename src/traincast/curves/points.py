"""Logged values made ready to be fitted: cleaned, in order, and few enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traincast.errors import InputError
from traincast.logs import argument_checks, gate
from traincast.logs.counting import of_all

Floats = NDArray[np.float64]
FEWEST = 4
_BINS = 60
_LEAST_NOISE = 3e-4
_SD_OF_DIFFERENCES = 0.954  # median absolute difference of two neighbours, in their standard deviations


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Finite values over increasing steps."""

    steps: Floats
    values: Floats
    warnings: tuple[str, ...] = ()

    @property
    def last_step(self) -> float:
        return float(self.steps[-1])

    def noise(self) -> float:
        """Relative noise of one value, from neighbours in the second half: the curve itself moves little there."""
        late = np.abs(self.values[len(self.values) // 2 :])
        moves = np.diff(np.log(np.maximum(late, 1e-12)))
        if len(moves) < FEWEST - 1:
            return 0.01
        return max(float(np.median(np.abs(moves - np.median(moves)))) / _SD_OF_DIFFERENCES, _LEAST_NOISE)

    def level(self) -> float:
        """Where the curve is now: the median of its last eighth."""
        return float(np.median(self.values[-max(3, len(self.values) // 8) :]))


def clean(steps: ArrayLike, values: ArrayLike) -> Points:
    """Finite points in order; several values of one step become their mean. What was done is told."""
    places, logged = (
        argument_checks.floats("The steps of a curve", steps),
        argument_checks.floats("The values of a curve", values),
    )
    if len(places) != len(logged):
        raise InputError(f"A curve needs as many steps as values, but there are {len(places)} and {len(logged)}.")
    warnings = []
    is_finite = np.isfinite(places) & np.isfinite(gate.numbers(logged))
    if not is_finite.all():
        many = of_all(
            int((~is_finite).sum()), len(places), "points", "is not finite and was", "are not finite and were"
        )
        warnings.append(f"{many} left out.")
        places, logged = places[is_finite], logged[is_finite]
    if (np.diff(places) < 0).any():
        warnings.append("Steps were out of order and were sorted.")
        order = np.argsort(places, kind="stable")
        places, logged = places[order], logged[order]
    if len(places) and places[0] < 0:
        raise InputError(f"Steps should be at least 0, but the first is {places[0]:g}.")
    if (np.diff(places) == 0).any():
        places, first, counts = np.unique(places, return_index=True, return_counts=True)
        logged = np.add.reduceat(logged, first) / counts
        warnings.append("Several values of the same step were averaged.")
    if len(places) < FEWEST:
        raise InputError(f"A curve needs at least {FEWEST} finite points, but there are {len(places)}.")
    return Points(places, logged, tuple(warnings))


@dataclass(frozen=True, eq=False, slots=True)
class Bins:
    """Medians of points that lie close together, and how many they are."""

    steps: Floats
    values: Floats
    counts: Floats


def binned(points: Points) -> Bins:
    """At most some hundred places, dense at the start and again along the whole: a curve is fitted as well on them."""
    steps, values = points.steps, points.values
    is_after_start = steps > 0  # power laws begin after it
    steps, values = steps[is_after_start], values[is_after_start]
    if len(steps) <= _BINS:
        return Bins(steps, values, np.ones(len(steps)))
    first, last = max(steps[0], 1e-3 * steps[-1]), steps[-1]
    edges = np.union1d(np.geomspace(first, last, _BINS), np.linspace(steps[0], last, _BINS // 2))
    starts = np.unique(np.r_[0, np.searchsorted(steps, edges[:-1], side="right")])
    starts = starts[starts < len(steps)]
    ends = np.r_[starts[1:], len(steps)]
    middle = np.array([np.median(values[start:end]) for start, end in zip(starts, ends, strict=True)])
    counts = (ends - starts).astype(float)
    return Bins(np.add.reduceat(steps, starts) / counts, middle, counts)
