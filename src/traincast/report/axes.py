"""An axis of a chart: the unit that all its values are read in, and where it has marks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.units import KILO, PETA, bytes_unit, count_unit, duration_unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincast.report.table import Show

_DECIMAL: dict[Show, str] = {"flop": "flop", "flop_per_s": "flop/s", "bytes_per_s": "B/s"}
_MOST_WHOLE = 12  # whole numbers that have a mark each
_MOST_DECADES = 4.0  # that have marks within them


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Values are divided by `size`; `every` is where plotly sets marks, None: where it thinks best."""

    size: float
    unit: str
    is_log: bool
    every: float | str | None

    def layout(self, label: str) -> dict[str, Any]:
        """For plotly. Marks of base units have prefixes, "10 k"; of others not: "100 u" of an hour is no time."""
        layout: dict[str, Any] = {
            "title": {"text": f"{label} ({self.unit})" if self.unit else label, "standoff": 12},
            "automargin": True,
            "exponentformat": "SI" if self.size == 1 else "none",
            "gridcolor": "#d8dee4",
        }
        if self.is_log:
            layout["type"] = "log"
        return layout if self.every is None else {**layout, "dtick": self.every}


def axis_of(values: Iterable[Any], show: Show, *, is_log: bool) -> Axis:
    """The axis on which these values are best read."""
    sizes = [abs(value) for value in values if is_finite(value)]
    size, unit = _log_unit([size for size in sizes if size], show) if is_log else _unit(max(sizes, default=0.0), show)
    return Axis(size=size, unit=unit, is_log=is_log, every=_every(sizes, show, is_log=is_log))


def is_finite(value: Any) -> bool:
    """Whether it is a number that has a place on an axis."""
    return value is not None and not isinstance(value, str) and math.isfinite(value)


def _unit(largest: float, show: Show) -> tuple[float, str]:
    """The unit in which the largest value is best read, and its size."""
    if show == "duration":
        return duration_unit(largest)
    if show == "bytes":
        return bytes_unit(largest)
    if show == "percent":
        return 0.01, "%"
    if show in _DECIMAL:
        return count_unit(largest, _DECIMAL[show])
    return 1.0, "USD" if show == "usd" else ""


def _log_unit(sizes: list[float], show: Show) -> tuple[float, str]:
    """A logarithmic axis spans many units: its own is that of the middle, or that which its marks have prefixes for.

    Plotly has none above tera, and nobody says kiloseconds.
    """
    if not sizes:
        return _unit(0.0, show)
    if show in _DECIMAL and max(sizes) < PETA / 2:
        return 1.0, _DECIMAL[show]
    if show == "duration" and max(sizes) < KILO and _decades(sizes) > _MOST_DECADES:
        return 1.0, "s"
    return _unit(math.sqrt(max(sizes)) * math.sqrt(min(sizes)), show)


def _every(sizes: list[float], show: Show, *, is_log: bool) -> float | str | None:
    """Half a device is none; and on a logarithmic axis the marks 3, 4, 6 to 9 lie on one another."""
    if not is_log:
        return 1 if show == "integer" and 0 < max(sizes, default=0.0) <= _MOST_WHOLE else None
    decades = _decades([size for size in sizes if size])
    if 0 < decades < 1:
        return None  # of a single value plotly shows the decades around it
    return "D2" if decades <= _MOST_DECADES else 1


def _decades(sizes: list[float]) -> float:
    return math.log10(max(sizes)) - math.log10(min(sizes)) if sizes else 0.0
