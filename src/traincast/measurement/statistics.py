"""Many timings of one thing, told in a few numbers that a descheduled process does not move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

# Of a normal distribution, the standard deviation over the median absolute deviation.
_SD_OVER_MAD = 1.4826
_MOST_SDS = 5.0
# Steps that repeat to the digit (a coarse or fake clock) have no spread of their own to judge others by.
_LEAST_SD_FRACTION = 0.02
_FEWEST_TO_JUDGE = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """What `n` values were like. Outliers, far above the rest, are in `n` and `mean` and in nothing else.

    `spread_fraction` is a robust standard deviation over the median. `mean` times `n` is what was really spent.
    """

    n: int
    median: float
    minimum: float
    p10: float
    p90: float
    mean: float
    n_outliers: int = 0
    spread_fraction: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all values."""
        return self.n * self.mean

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Summary:
        return cls(**data)


def summarise(values: Sequence[float]) -> Summary:
    """Median, least and p10 to p90 of at least one finite value."""
    given = np.asarray(values, dtype=float)
    if given.ndim != 1 or not given.size or not np.isfinite(given).all():
        raise ValueError(f"a summary needs a list of finite numbers, not {values!r}")
    kept = given[~are_outliers(given)]
    median = float(np.median(kept))
    p10, p90 = (float(value) for value in np.quantile(kept, (0.1, 0.9)))
    return Summary(
        n=int(given.size),
        median=median,
        minimum=float(kept.min()),
        p10=p10,
        p90=p90,
        mean=float(given.mean()),
        n_outliers=int(given.size - kept.size),
        spread_fraction=_robust_sd(kept) / median if median else 0.0,
    )


def are_outliers(values: Any) -> Any:
    """Which of them are so far above the median that something else had the machine."""
    given = np.asarray(values, dtype=float)
    if given.size < _FEWEST_TO_JUDGE:
        return np.zeros(given.shape, dtype=bool)
    median = np.median(given)
    sd = max(_robust_sd(given), _LEAST_SD_FRACTION * abs(median))
    return given > median + _MOST_SDS * sd


def _robust_sd(values: Any) -> float:
    return float(_SD_OVER_MAD * np.median(np.abs(values - np.median(values))))
