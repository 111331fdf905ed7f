"""Means over seeds in tables and charts: accuracies with their interval, differences with a sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Series
from traincast.report.table import Column

if TYPE_CHECKING:
    from traincast.recipes.over_seeds import OverSeeds


def interval_cells(found: OverSeeds | None) -> tuple[float | None, float | None, float | None]:
    """Mean, and the ends of its interval, which for shares end at 0 and 1."""
    if found is None:
        return None, None, None
    return found.mean, _share(found.low), _share(found.high)


def gain_columns(over: str, key: str = "gain") -> tuple[Column, ...]:
    """A difference in percentage points, as text: a sign says more than a colour."""
    return (
        Column(key=f"{key}_points", header=over, show="name"),
        Column(key=f"{key}_interval_points", header="95 %", show="name"),
    )


def signed_cells(found: OverSeeds | None) -> tuple[str | None, str | None]:
    """In percentage points."""
    if found is None:
        return None, None
    return _points(found.mean), None if found.low is None or found.high is None else _span(found.low, found.high)


def gain_words(found: OverSeeds) -> str:
    """A difference in a sentence, with what its interval allows to say."""
    if found.low is None or found.high is None:
        return f"{_points(found.mean)} points"
    is_sure = found.low > 0 or found.high < 0
    certainty = "" if is_sure else ", which may be chance"
    return f"{_points(found.mean)} points ({_span(found.low, found.high)}{certainty})"


def mean_band(name: str, x: Sequence[float] | Sequence[str], found: Sequence[OverSeeds]) -> Series:
    """A line with its interval; one seed has none."""
    low, high = [_share(each.low) for each in found], [_share(each.high) for each in found]
    has_band = None not in low
    return Series(
        name=name,
        x=x,
        y=[each.mean for each in found],
        low=low if has_band else (),
        high=high if has_band else (),
    )


def flat_line(name: str, x: Sequence[float] | Sequence[str], found: OverSeeds) -> Series:
    """What to compare with, the same everywhere."""
    return Series(name=name, x=x, y=[found.mean] * len(x))


def _share(value: float | None) -> float | None:
    return None if value is None else min(max(value, 0.0), 1.0)


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}"


def _span(low: float, high: float) -> str:
    return f"{_points(low)} to {_points(high)}"
