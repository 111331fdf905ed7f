"""Values to compare with, drawn over a chart: a dashed line each, and its name where no other name is."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.report.axes import Axis, is_finite

if TYPE_CHECKING:
    from traincast.report.chart import Chart, ReferenceLine

DASHED: dict[str, Any] = {"type": "line", "line": {"dash": "dash", "width": 1.5, "color": "#999999"}}
_ROW_PX = 15  # of names that stand above each other


@dataclass(frozen=True, slots=True)
class Extent:
    """An axis and what is drawn along it, the lines themselves as well."""

    axis: Axis
    low: float
    high: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[Any], *, from_zero: bool) -> Extent:
        found = [value for value in values if is_finite(value) and (value > 0 or not axis.is_log)]
        zero = [0.0] if from_zero and not axis.is_log else []
        return cls(axis, min(found + zero, default=0.0), max(found + zero, default=0.0))

    def has(self, value: float) -> bool:
        """A log axis ends above 0: a target of no loss at all is not on it."""
        return value > 0 or not self.axis.is_log

    def is_in_upper_half(self, value: float) -> bool:
        if self.axis.is_log:
            return value * value > self.low * self.high
        return value > (self.low + self.high) / 2

    def place(self, value: float) -> float:
        """For shapes."""
        return value / self.axis.size

    def label_place(self, value: float) -> float:
        """For names, which unlike shapes take the logarithm on log axes."""
        return math.log10(self.place(value)) if self.axis.is_log else self.place(value)


def draw_lines(chart: Chart, x: Extent, y: Extent) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shapes and annotations for plotly.

    Names of upright lines stand in the half that lying ones leave free, each in a row of its own, and on the side of
    the line where there is more room: on a narrow screen two names would else lie on each other, or beyond the edge.
    """
    lines = [line for line in chart.reference_lines if (x if line.axis == "x" else y).has(line.value)]
    upright = [line for line in lines if line.axis == "x"]
    n_above = sum(y.is_in_upper_half(line.value) for line in lines if line.axis == "y")
    at_foot = n_above > (len(lines) - len(upright)) / 2
    shapes = [_upright(line, x) if line.axis == "x" else _lying(line, y) for line in lines]
    names = [
        _upright_name(line, x, row=upright.index(line), at_foot=at_foot) if line.axis == "x" else _lying_name(line, y)
        for line in lines
    ]
    return shapes, names


def _upright(line: ReferenceLine, x: Extent) -> dict[str, Any]:
    at = x.place(line.value)
    return {**DASHED, "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1}


def _lying(line: ReferenceLine, y: Extent) -> dict[str, Any]:
    at = y.place(line.value)
    return {**DASHED, "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": at, "y1": at}


def _upright_name(line: ReferenceLine, x: Extent, *, row: int, at_foot: bool) -> dict[str, Any]:
    return {
        **_text(line),
        "xref": "x",
        "x": x.label_place(line.value),
        "xanchor": "right" if x.is_in_upper_half(line.value) else "left",
        "yref": "paper",
        "y": 0 if at_foot else 1,
        "yanchor": "bottom" if at_foot else "top",
        "yshift": _ROW_PX * (row if at_foot else -row),
    }


def _lying_name(line: ReferenceLine, y: Extent) -> dict[str, Any]:
    at = y.label_place(line.value)
    return {**_text(line), "xref": "paper", "x": 1, "xanchor": "right", "yref": "y", "y": at, "yanchor": "bottom"}


def _text(line: ReferenceLine) -> dict[str, Any]:
    """Plotly reads a little HTML in it; names are not meant as such."""
    return {"text": html.escape(line.label, quote=False), "showarrow": False}
