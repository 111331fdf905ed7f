"""One number from several seeds: its mean, and how far the mean can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traincast.errors import InputError

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class OverSeeds:
    """The mean of `n` runs that differ in their seed, with Student's interval for it; one run has no interval."""

    n: int
    mean: float
    low: float | None
    high: float | None


def over_seeds(values: Sequence[float]) -> OverSeeds:
    """Mean and 95 % interval. Seeds move what is random in a run; the test images are the same for all of them."""
    n = len(values)
    if not n:
        raise InputError("A mean over seeds needs at least one run.")
    mean = math.fsum(values) / n
    if n == 1:
        return OverSeeds(n=1, mean=mean, low=None, high=None)
    from scipy.special import stdtrit  # scipy.stats takes ten times as long to import

    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance / n)
    return OverSeeds(n=n, mean=mean, low=mean - half, high=mean + half)


def paired(values: Sequence[float], others: Sequence[float]) -> OverSeeds:
    """How much larger the first are than the others of the same seeds: what a seed does to both cancels."""
    if len(values) != len(others):
        raise InputError(f"Runs are paired by seed, and {len(values)} cannot be paired with {len(others)}.")
    return over_seeds([value - other for value, other in zip(values, others, strict=True)])
