"""Which of many plans are worth a look, and which one to take: in time, in money, and by what is sure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_S_PER_H = 3600.0
LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What has to be kept, and how sure that has to be."""

    deadline_s: float | None = None
    budget_usd: float | None = None
    confidence: float = LEAST_CONFIDENCE  # a plan that is less likely to keep both is not recommended

    def __post_init__(self) -> None:
        for name, value in (("A deadline", self.deadline_s), ("A budget", self.budget_usd)):
            if value is not None and not 0 < value < math.inf:
                unit = "seconds" if name == "A deadline" else "US dollars"
                raise InputError(f"{name} should be above 0, not {value:g} {unit}.")
        if not LEAST_CONFIDENCE <= self.confidence < 1:
            raise InputError(f"A confidence should be at least 0.5 and below 1, not {self.confidence:g}.")

    def time_s(self, usd_per_hour: Floats) -> Floats:
        """What a plan of each price may take at most: money runs out as time does."""
        longest = np.full(len(usd_per_hour), math.inf if self.deadline_s is None else self.deadline_s)
        if self.budget_usd is None:
            return longest
        return np.minimum(longest, _S_PER_H * self.budget_usd / usd_per_hour)


def front(total_s: Floats, cost_usd: Floats) -> Ints:
    """Plans than which none is both faster and cheaper, fastest first; of equal ones the first.

    What is not finite is no plan.
    """
    order = np.lexsort((np.arange(len(total_s)), cost_usd, total_s))
    order = order[np.isfinite(total_s[order]) & np.isfinite(cost_usd[order])]
    costs = cost_usd[order]
    is_cheaper = np.ones(len(order), dtype=bool)
    is_cheaper[1:] = costs[1:] < np.minimum.accumulate(costs)[:-1]
    return order[is_cheaper]


def cheapest(total_s: Floats, cost_usd: Floats, is_kept: NDArray[np.bool_]) -> int | None:
    """Of those that keep the limits; of equally cheap ones the fastest."""
    return _first(np.lexsort((total_s, cost_usd)), is_kept & np.isfinite(total_s))


def fastest(total_s: Floats, cost_usd: Floats, is_kept: NDArray[np.bool_]) -> int | None:
    """Of those that keep the limits; of equally fast ones the cheapest."""
    return _first(np.lexsort((cost_usd, total_s)), is_kept & np.isfinite(total_s))


def nearest(total_s: Floats, limit_s: Floats, probability: Floats) -> int | None:
    """The likeliest to keep them where none is likely enough; where all are hopeless, the one least beyond."""
    with np.errstate(invalid="ignore"):
        beyond = np.where(np.isfinite(limit_s), total_s / limit_s, 0.0)
    return _first(np.lexsort((beyond, -probability)), np.isfinite(total_s))


def _first(order: Ints, is_allowed: NDArray[np.bool_]) -> int | None:
    allowed = order[is_allowed[order]]
    return int(allowed[0]) if len(allowed) else None
