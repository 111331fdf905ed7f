"""How accurate is a run with such a loss? Learned from runs that log both, as a line of logarithms that never falls:

    log(1 - accuracy) = slope * log(loss) + level(run) + rest

The slope is drawn to a usual one where pairs are few, levels of runs are drawn together as far as siblings agree. Where
a line is poor, as where the accuracy stays while the loss goes to 0, means that never fall take its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.logs.log import Series

Floats = NDArray[np.float64]

FEWEST_PAIRS = 3
_ENOUGH = 8  # pairs near the end: with fewer, earlier ones count too
# Slope and its standard deviation: of loss and accuracy of one data set, and of training loss and another accuracy.
_SAME_DATA, _OTHER_DATA = (1.0, 0.5), (0.25, 0.25)
_USUAL_SD, _N_USUAL = 0.1, 2.0  # of the rest and of levels: what is presumed, and how many observations that is worth
_TOGETHER = 4.0  # neighbouring pairs that err together count as one
_CONTRADICTS = 2.0  # standard errors between the pairs' own slope and the usual one: beyond, the usual one gives way
_LEAST_ERROR = 1e-4  # an accuracy of 1 is a test set that is too small
_NEWEST, _FEWEST_NEWEST = 4, 2  # the last quarter of a run's own pairs, two at least, tells the level it is at now
_MOST_MEANS, _PAIRS_OF_MEAN = 10, 4
_IS_POOR = 0.7  # of a line's squared rest: means that leave less are better


@dataclass(frozen=True, eq=False, slots=True)
class Pairs:
    """Of one run, in the order of steps: logarithms of losses and of what accuracies lack to 1."""

    log_losses: Floats
    log_errors: Floats

    def __len__(self) -> int:
        return len(self.log_losses)

    def at(self, chosen: NDArray[np.bool_]) -> Pairs:
        return Pairs(self.log_losses[chosen], self.log_errors[chosen])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Relation:
    """A shape between knots, which goes on beyond them with a slope that is not quite known; and the run's level."""

    knots: tuple[Floats, Floats]
    slopes: tuple[float, float]  # below and above the knots
    slope_sd: float
    level: float
    sd: float  # of the level and of the rest
    n_pairs: int
    n_runs: int
    is_line: bool

    def accuracies(self, losses: Floats, slope_error: Floats | float = 0.0, error: Floats | float = 0.0) -> Floats:
        """Errors are in standard deviations, and broadcast with the losses."""
        logs = np.log(np.maximum(losses, 1e-300))
        first, last = self.knots[0][0], self.knots[0][-1]
        below, above = (np.maximum(slope + self.slope_sd * slope_error, 0.0) for slope in self.slopes)
        found = np.interp(logs, *self.knots) + below * np.minimum(logs - first, 0) + above * np.maximum(logs - last, 0)
        return np.asarray(1.0 - np.exp(np.minimum(found + self.level + self.sd * error, 0.0)))

    def __str__(self) -> str:
        runs = f"{self.n_runs} run{'s' * (self.n_runs > 1)}"
        kind = f"a line with slope {self.slopes[0]:.2g}" if self.is_line else "means that never fall"
        return f"{self.n_pairs} pairs of {runs}: {kind}, and the error rate is off it by {self.sd:.0%}"


def pairs_of(loss: Series, accuracy: Series) -> Pairs:
    """Each accuracy with the median loss within half an interval of it, or else the nearest within a whole one."""
    if (loss.values <= 0).any():
        raise InputError(f"'{loss.name}' is not above 0 everywhere, so no accuracy can be derived from it.")
    steps = accuracy.steps
    gap = float(np.median(np.diff(steps if len(steps) > 1 else loss.steps))) if len(loss) > 1 else math.inf
    first = np.searchsorted(loss.steps, steps - 0.5 * gap)
    after = np.searchsorted(loss.steps, steps + 0.5 * gap, side="right")
    losses = np.full(len(steps), np.nan)
    for place in range(len(steps)):
        if after[place] > first[place]:
            losses[place] = np.median(loss.values[first[place] : after[place]])
        else:
            nearest = int(np.argmin(np.abs(loss.steps - steps[place])))
            if abs(loss.steps[nearest] - steps[place]) <= gap:
                losses[place] = loss.values[nearest]
    is_paired = np.isfinite(losses)
    errors = np.maximum(1.0 - accuracy.values, _LEAST_ERROR)
    return Pairs(np.log(losses[is_paired]), np.log(errors[is_paired]))


def learn_relation(
    own: Pairs | None, siblings: Sequence[Pairs], *, below: float, is_same_data: bool = True
) -> Relation:
    """From pairs with a loss of at most `below`: the part of the runs that the forecast is about."""
    own = own if own else None
    paired = [pairs for pairs in (own, *siblings) if pairs]
    runs = [_near_the_end(pairs, math.log(below)) for pairs in paired]
    n_pairs = sum(map(len, runs))
    if n_pairs < FEWEST_PAIRS:
        raise InputError(
            f"Deriving an accuracy from the loss needs at least {FEWEST_PAIRS} pairs of both, but there are {n_pairs}."
        )
    usual = _SAME_DATA if is_same_data else _OTHER_DATA
    slope, slope_sd, variance = _line(runs, *usual)
    early = max(slope, _line(paired, *usual)[0])  # accuracy comes fast at first
    x = np.concatenate([pairs.log_losses for pairs in runs])
    ends = np.array([x.min(), x.max()])
    knots, slopes, is_line = (ends, slope * ends), (slope, early), True
    found = _means_that_never_fall(runs, slope)
    if found is not None and found[1] < _IS_POOR * variance:
        knots, variance, is_line = found[0], found[1], False
        third = max(len(knots[0]) // 3, 1)
        rise = (knots[1][third] - knots[1][0]) / (knots[0][third] - knots[0][0])
        slopes = (float(rise), early)
    rests = [pairs.log_errors - np.interp(pairs.log_losses, *knots) for pairs in runs]
    if own is not None:
        rests[0] = rests[0][-max(len(rests[0]) // _NEWEST, _FEWEST_NEWEST) :]
    levels = [float(np.mean(rest)) for rest in rests]
    level, level_variance = _level(levels, 0 if own is None else len(rests[0]), variance)
    return Relation(
        knots=knots,
        slopes=slopes,
        slope_sd=slope_sd,
        level=level,
        sd=math.sqrt(level_variance + variance),
        n_pairs=n_pairs,
        n_runs=len(runs),
        is_line=is_line,
    )


def _near_the_end(pairs: Pairs, below: float) -> Pairs:
    limit = max(below, float(np.sort(pairs.log_losses)[min(_ENOUGH, len(pairs)) - 1]))
    return pairs.at(pairs.log_losses <= limit)


def _line(runs: Sequence[Pairs], usual: float, usual_sd: float) -> tuple[float, float, float]:
    """One slope within all runs, its standard deviation, and the variance of what is off it."""
    x = np.concatenate([pairs.log_losses - pairs.log_losses.mean() for pairs in runs])
    y = np.concatenate([pairs.log_errors - pairs.log_errors.mean() for pairs in runs])
    n_spare = len(x) - len(runs) - 1
    usual_sd = _sd_of_usual(x, y, usual, usual_sd, n_spare)
    slope, variance = usual, _USUAL_SD**2
    for _ in range(2):  # the less is off the line, the less the usual slope weighs
        pull = _TOGETHER * variance / usual_sd**2
        slope = max(float((x @ y + pull * usual) / (x @ x + pull)), 0.0)
        rest = y - slope * x
        variance = _variance(float(rest @ rest), n_spare)
    return slope, math.sqrt(_TOGETHER * variance / float(x @ x + pull)), variance


def _sd_of_usual(x: Floats, y: Floats, usual: float, usual_sd: float, n_spare: int) -> float:
    """How sure the usual slope is: less where pairs contradict it, as of a loss that has a floor far above 0."""
    squares = float(x @ x)
    if squares == 0:
        return usual_sd
    own = max(float(x @ y) / squares, 0.0)
    rest = y - own * x
    own_variance = _TOGETHER * _variance(float(rest @ rest), n_spare) / squares
    return math.sqrt(max(usual_sd**2, (own - usual) ** 2 - _CONTRADICTS**2 * own_variance))


def _variance(squares: float, n_spare: float) -> float:
    """With a few observations of the usual one among those that were made."""
    return (squares + _N_USUAL * _USUAL_SD**2) / (max(n_spare, 0) + _N_USUAL)


def _level(levels: Sequence[float], n_own: int, variance: float) -> tuple[float, float]:
    """The run's own, which is the first if it has pairs, drawn to those of its siblings; and its variance."""
    others = np.array(levels[1:] if n_own else levels)
    own_variance = variance * min(_TOGETHER / n_own, 1.0) if n_own else math.inf
    if not len(others):
        return levels[0], own_variance
    between = _variance(float(((others - others.mean()) ** 2).sum()), len(others) - 1) * (1 + 1 / len(others))
    share = between / (between + own_variance) if n_own else 0.0
    return share * levels[0] + (1 - share) * float(others.mean()), (1 - share) * between


def _means_that_never_fall(runs: Sequence[Pairs], slope: float) -> tuple[tuple[Floats, Floats], float] | None:
    """Knots, and the variance of what is off them; None where there are too few pairs."""
    levels = [float(np.mean(pairs.log_errors - slope * pairs.log_losses)) for pairs in runs]
    x = np.concatenate([pairs.log_losses for pairs in runs])
    y = np.concatenate([pairs.log_errors - level for pairs, level in zip(runs, levels, strict=True)])
    n_means = min(_MOST_MEANS, len(x) // _PAIRS_OF_MEAN)
    if n_means < 4:
        return None
    parts = np.array_split(np.argsort(x, kind="stable"), n_means)
    places, means = (np.array([values[part].mean() for part in parts]) for values in (x, y))
    places, first = np.unique(places, return_index=True)
    knots = (places, _never_falling(means[first]))
    rest = y - np.interp(x, *knots)
    return knots, _variance(float(rest @ rest), len(x) - len(runs) - n_means)


def _never_falling(values: Floats) -> Floats:
    """Neighbours that fall become their mean (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left, n_left), (right, n_right) = pools[-2:]
            pools[-2:] = [((left * n_left + right * n_right) / (n_left + n_right), n_left + n_right)]
    return np.concatenate([np.full(n, value) for value, n in pools])
