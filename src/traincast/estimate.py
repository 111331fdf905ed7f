"""A number with its uncertainty: what is as likely below as above, and what it is below 1 and 9 times of 10."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """p10, median and p90; infinite where so much of the distribution never gets there."""

    p10: float
    p50: float
    p90: float

    def times(self, factor: float) -> Estimate:
        return Estimate(self.p10 * factor, self.p50 * factor, self.p90 * factor)

    def plus(self, other: Estimate) -> Estimate:
        """Of two that err together: what is slow in one is slow in the other."""
        return Estimate(self.p10 + other.p10, self.p50 + other.p50, self.p90 + other.p90)

    @property
    def ends(self) -> tuple[float, float]:
        return self.p10, self.p90
