"""A neutral chart: series of raw values, and how their axes read. Drawn by `figure.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from traincast.report.table import Show

Kind = Literal["line", "bar", "stacked_bar", "stacked_area", "stacked_steps", "gantt", "scatter"]
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, set of bars or cloud of points; `text` is what a point says when pointed at.

    A line may have a band around it, from `low` to `high`. With `is_dots` it is drawn as points: what was measured.
    `sizes`, from 0 to 1, are how large the points are by area; in a chart with such points lines have no marks.
    `labels` are the names of the points of a scatter chart, written beside those that have room for it.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Values
    text: Sequence[str] = ()
    low: Values = ()
    high: Values = ()
    is_dots: bool = False
    sizes: Sequence[float] = ()
    labels: Sequence[str] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.text) not in (0, len(self.y)):
            raise ValueError(f"series {self.name!r}: {len(self.x)} x, {len(self.y)} y, {len(self.text)} texts")
        if len(self.low) != len(self.high) or len(self.low) not in (0, len(self.y)):
            raise ValueError(f"series {self.name!r}: {len(self.y)} y, {len(self.low)} low, {len(self.high)} high")
        if len(self.sizes) not in (0, len(self.y)):
            raise ValueError(f"series {self.name!r}: {len(self.y)} y, {len(self.sizes)} sizes")
        if len(self.labels) not in (0, len(self.y)):
            raise ValueError(f"series {self.name!r}: {len(self.y)} y, {len(self.labels)} labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A value to compare with, such as the memory of a device."""

    value: float
    label: str
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Series on one pair of axes.

    Labels leave out the unit: it follows from the values and from how they are shown (`x_show`, `y_show`).
    """

    title: str
    kind: Kind
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    x_show: Show = "ratio"
    y_show: Show = "ratio"
    log_x: bool = False
    log_y: bool = False
    reference_lines: tuple[ReferenceLine, ...] = ()
    diagonal: bool = False  # where y equals x: predicted against measured
