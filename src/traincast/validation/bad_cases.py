"""Where we are worst, by name: families, GPUs and single rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traincast.validation.measured_set import MeasuredSet

_FEWEST = 2  # rows that a group needs to be named for its median


@dataclass(frozen=True, slots=True, kw_only=True)
class BadGroup:
    """Rows of one set that share a family, a GPU or both."""

    set_name: str
    group: str
    n: int
    median_absolute_fraction: float
    bias_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """One measurement that we miss."""

    set_name: str
    row: str
    observed_s: float
    predicted_s: float

    @property
    def error_fraction(self) -> float:
        return self.predicted_s / self.observed_s - 1.0


def worst_groups(measured: MeasuredSet, *tags: str, most: int = 5) -> list[BadGroup]:
    """The groups with the largest median error, of those with a few rows and above the set's own median."""
    usual = measured.summary().median_absolute_fraction
    found = [
        BadGroup(
            set_name=measured.name,
            group=", ".join(key),
            n=summary.n,
            median_absolute_fraction=summary.median_absolute_fraction,
            bias_fraction=summary.bias_fraction,
        )
        for key, summary in measured.summaries_by(*tags).items()
        if summary.n >= _FEWEST and summary.median_absolute_fraction > 1.5 * usual
    ]
    return sorted(found, key=lambda group: -group.median_absolute_fraction)[:most]


def worst_rows(sets: Sequence[MeasuredSet], *, most: int = 3) -> list[BadRow]:
    """Of every set the rows furthest off on a scale where twice as slow and twice as fast are as bad."""
    found = []
    for measured in sets:
        predicted_s = measured.prediction().seconds
        off = np.abs(np.log(predicted_s / measured.observed_s))
        for row in np.argsort(-off)[:most].tolist():
            found.append(
                BadRow(
                    set_name=measured.name,
                    row=row_name(measured, row),
                    observed_s=float(measured.observed_s[row]),
                    predicted_s=float(predicted_s[row]),
                )
            )
    return found


def row_name(measured: MeasuredSet, row: int) -> str:
    """What tells a row from others: model or op, batch, GPU."""
    tags = measured.tags
    parts = [str(tags[key][row]) for key in ("model", "op") if key in tags]
    if not parts:
        parts = [str(tags["family"][row])]
    if "mode" in tags:
        parts.append(f"{tags['mode'][row]} {tags['part'][row]}")
    if "batch" in tags:
        parts.append(f"batch {tags['batch'][row]}")
    if "dims" in tags and tags["dims"][row] != "-":
        parts.append(f"{tags['dims'][row]} size")
    return ", ".join([*parts, str(tags["device"][row])])
