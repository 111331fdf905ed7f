"""Whether worths that are only known within bounds are divided by `divide_by_hull` as before, whatever they are.

A job's count of devices is a corner of its hull if every piece that leads to it is steeper than every piece behind it.
So if all pieces that lead to the counts of all jobs are steeper than some slope, and all behind them less steep, then
these counts are what is given out, in whatever order: they need exactly the devices that there are. Worths that stay
as they are to the last bit may also stand on that slope: who of them comes first does not change either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Between:
    """A job with `n` devices: by number of devices its worth is from `low` to `high`, and where `fixed` it is both."""

    low: Floats
    high: Floats
    fixed: NDArray[np.bool_]
    n: int

    def taken(self) -> tuple[float, float]:
        """The least steep piece that may lead to n devices, where it may move and where it is fixed."""
        counts = np.arange(self.n)
        slopes = (self.low[self.n] - self.high[: self.n]) / (self.n - counts)
        fixed = self.fixed[: self.n] & self.fixed[self.n]
        return float(slopes[~fixed].min(initial=np.inf)), float(slopes[fixed].min(initial=np.inf))

    def left(self) -> tuple[float, float]:
        """The steepest piece that may go on from there."""
        counts = np.arange(self.n + 1, len(self.low))
        slopes = (self.high[self.n + 1 :] - self.low[self.n]) / (counts - self.n)
        fixed = self.fixed[self.n + 1 :] & self.fixed[self.n]
        return float(slopes[~fixed].max(initial=-np.inf)), float(slopes[fixed].max(initial=-np.inf))


def is_sure(jobs: Sequence[Between], n_devices: int, *, rounding: float) -> bool:
    """Whether the counts that are the answer at one moment are it for all worths between; slopes are that exact."""
    if all(job.fixed.all() for job in jobs):
        return True
    taken, left = [job.taken() for job in jobs], [job.left() for job in jobs]
    if any(min(above) - max(below) <= rounding for above, below in zip(taken, left, strict=True)):
        return False
    far = 3 * rounding  # so that what moves does not come near to what is fixed
    steepest = min(min(moves - far, fixed + rounding) for moves, fixed in taken)
    moves, fixed = (max(slopes) for slopes in zip(*left, strict=True))
    if sum(job.n for job in jobs) < n_devices:  # everyone has as many as bring anything
        return moves + far < 0 and fixed <= 0 and steepest > 0
    return max(moves + far, fixed - rounding, 0.0) < steepest
