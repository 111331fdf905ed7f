"""Errors of predictions in a few figures, and whether intervals hold what they promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.lognormal import P90_SDS
from traincast.trace.graph import Floats

Rows = NDArray[np.bool_]

PROMISED = 0.8  # of the rows lie between p10 and p90
_MANY_ROWS = 200  # from here on coverage itself is judged; below, whether chance alone could explain it
_RIGHT_COVERAGE = (0.75, 0.85)
_SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Errors relative to what was measured. `bias_fraction` is their median with sign: positive is too slow.

    Rows that a method has no answer for are counted in `n_unanswered` and in nothing else.
    """

    n: int
    n_unanswered: int
    median_absolute_fraction: float
    mean_absolute_fraction: float
    bias_fraction: float
    n_inside: int | None = None  # between p10 and p90; None: the method gives no interval

    @property
    def coverage_fraction(self) -> float | None:
        return None if self.n_inside is None or not self.n else self.n_inside / self.n

    @property
    def is_coverage_right(self) -> bool | None:
        """Whether p10 to p90 may be taken at its word; None without intervals."""
        return None if self.n_inside is None or not self.n else is_coverage_right(self.n_inside, self.n)


def summarise(predicted_s: Floats, observed_s: Floats, log_sd: Floats | None = None) -> ErrorSummary:
    """The figures of some rows; a prediction that is not a number is no answer."""
    answered = np.isfinite(predicted_s)
    n = int(answered.sum())
    if not n:
        nothing = float("nan")
        return ErrorSummary(
            n=0,
            n_unanswered=len(predicted_s),
            median_absolute_fraction=nothing,
            mean_absolute_fraction=nothing,
            bias_fraction=nothing,
        )
    errors = predicted_s[answered] / observed_s[answered] - 1.0
    inside = None if log_sd is None else int(is_inside(predicted_s, observed_s, log_sd)[answered].sum())
    return ErrorSummary(
        n=n,
        n_unanswered=len(predicted_s) - n,
        median_absolute_fraction=float(np.median(np.abs(errors))),
        mean_absolute_fraction=float(np.mean(np.abs(errors))),
        bias_fraction=float(np.median(errors)),
        n_inside=inside,
    )


def is_inside(predicted_s: Floats, observed_s: Floats, log_sd: Floats) -> Rows:
    """Which measurements lie between p10 and p90 of their predictions."""
    inside: Rows = np.abs(np.log(predicted_s / observed_s)) <= P90_SDS * log_sd
    return inside


def is_coverage_right(n_inside: int, n: int) -> bool:
    """75 to 85 % of many rows; of few rows, a share that chance makes of 80 % more than once in twenty times."""
    if n >= _MANY_ROWS:
        return _RIGHT_COVERAGE[0] <= n_inside / n <= _RIGHT_COVERAGE[1]
    from scipy.stats import binomtest

    return bool(binomtest(n_inside, n, PROMISED).pvalue >= _SIGNIFICANCE)


def groups_of(tags: Mapping[str, NDArray[Any]], names: Sequence[str]) -> dict[tuple[str, ...], Rows]:
    """Rows that agree in all these tags, in the order of their values."""
    columns = [np.asarray(tags[name]).astype(str) for name in names]
    keys = sorted(set(zip(*(column.tolist() for column in columns), strict=True)))
    found: dict[tuple[str, ...], Rows] = {}
    for key in keys:
        rows = np.ones(len(columns[0]), dtype=bool)
        for column, value in zip(columns, key, strict=True):
            rows &= column == value
        found[key] = rows
    return found
