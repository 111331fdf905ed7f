"""Machines that are taken back now and then: how often to save, and what a run takes then.

Interruptions are Poisson, M seconds apart on average. A run of `work_s` seconds is cut into segments of tau seconds,
each followed by a checkpoint of C seconds. An interruption loses the segment and costs a restart of R seconds, which
can itself be interrupted.

    Young (1974)   tau = sqrt(2 C M)
    Daly (2006)    tau = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C     for C < 2M, else M
                   E[T] = M exp(R / M) (exp((tau + C) / M) - 1) work / tau

The variance follows from the same process: a segment is tried until it is not interrupted, a number of times that is
geometric, and each failed try takes an exponential time cut off at the end of the segment, and a restart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_NEVER_S = 1e15  # between interruptions that do not happen
_SMALL = 1e-4  # of an exponent: below it, a series instead of a difference of nearly equal numbers


@dataclass(frozen=True, eq=False, slots=True)
class SpotTime:
    """Of each run: the time to expect, its variance, the time between checkpoints, and how many interruptions."""

    mean_s: Floats
    variance_s2: Floats
    interval_s: Floats
    n_interruptions: Floats


def young_interval_s(checkpoint_s: ArrayLike, between_s: ArrayLike) -> Floats:
    """Of work between two checkpoints, to first order. `between_s` is the mean time between interruptions."""
    return np.sqrt(2 * np.asarray(checkpoint_s, float) * np.asarray(between_s, float))


def daly_interval_s(checkpoint_s: ArrayLike, between_s: ArrayLike) -> Floats:
    """Of work between two checkpoints, to third order; at least a moment, so that some work is done."""
    cost, mean = np.asarray(checkpoint_s, float), np.asarray(between_s, float)
    ratio = cost / (2 * mean)
    interval = young_interval_s(cost, mean) * (1 + np.sqrt(ratio) / 3 + ratio / 9) - cost
    return np.maximum(np.where(ratio < 1, interval, mean), 1e-3)


def spot_time(work_s: ArrayLike, *, checkpoint_s: ArrayLike, restart_s: float, between_s: ArrayLike) -> SpotTime:
    """What runs take that save at Daly's interval. Infinite where they never get anywhere."""
    work, cost, mean = np.broadcast_arrays(
        np.asarray(work_s, float), np.asarray(checkpoint_s, float), np.minimum(between_s, _NEVER_S)
    )
    interval = np.minimum(daly_interval_s(cost, mean), work)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        n_segments = work / interval
        segment = interval + cost
        failures = np.expm1(segment / mean)  # of a segment, on average
        lost_s, lost_s2 = _cut_off(segment, mean)
        down_s, down_s2 = _restart(np.full_like(mean, restart_s), mean)
        each_s = lost_s + down_s
        each_variance = (lost_s2 - lost_s**2) + (down_s2 - down_s**2)
        mean_s = n_segments * mean * np.exp(restart_s / mean) * failures
        variance = n_segments * (failures * each_variance + failures * (1 + failures) * each_s**2)
        n_interruptions = mean_s / mean
    return SpotTime(
        mean_s=np.where(np.isfinite(mean_s), mean_s, np.inf),
        variance_s2=np.where(np.isfinite(variance), variance, np.inf),
        interval_s=interval,
        n_interruptions=np.where(np.isfinite(n_interruptions), n_interruptions, np.inf),
    )


def can_finish(checkpoint_s: ArrayLike, restart_s: float, between_s: ArrayLike) -> NDArray[np.bool_]:
    """Whether a restart and a checkpoint fit between two interruptions: if not, a run is mostly undone work."""
    return np.asarray(checkpoint_s, float) + restart_s < np.asarray(between_s, float)


def _cut_off(length: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """First and second moment of an exponential time, given that it is below `length`."""
    x = length / mean
    odds = 1 / np.expm1(x)  # of reaching the end
    first = np.where(x < _SMALL, length * (0.5 - x / 12), mean - length * odds)
    second = np.where(x < _SMALL, length**2 * (1 / 3 - x / 12), 2 * mean**2 - odds * (length**2 + 2 * length * mean))
    return first, second


def _restart(length: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """First and second moment of a restart that begins anew whenever it is interrupted."""
    failures = np.expm1(length / mean)
    lost, lost2 = _cut_off(np.maximum(length, 1e-9), mean)
    first = mean * failures
    variance = failures * (lost2 - lost**2) + failures * (1 + failures) * lost**2
    return first, variance + first**2
