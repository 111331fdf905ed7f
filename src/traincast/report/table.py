"""A neutral table: raw values in base units, and for each column how people read it.

Renderers decide how a table looks. They all agree on how a value reads, because that is decided here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from traincast import units

if TYPE_CHECKING:
    from collections.abc import Callable

Show = Literal[
    "text",
    "name",  # text that stays on one line
    "integer",  # every digit: 25,557,032
    "count",  # three digits: 25.6 M
    "ratio",  # three digits without a unit
    "percent",  # of a fraction
    "shape",
    "flop",
    "flop_per_s",
    "bytes",
    "bytes_per_s",
    "duration",
    "usd",
]
Cell = Any  # str, int, float, a tuple of sizes, the numpy forms of these, or None where there is nothing to say
Row = tuple[Cell, ...]

_SHOW: dict[Show, Callable[[Any], str]] = {
    "text": str,
    "name": str,
    "integer": units.show_integer,
    "count": units.show_count,
    "ratio": units.show_ratio,
    "percent": units.show_percent,
    "shape": units.show_shape,
    "flop": units.show_flop,
    "flop_per_s": units.show_flop_per_s,
    "bytes": units.show_bytes,
    "bytes_per_s": units.show_bytes_per_s,
    "duration": units.show_duration,
    "usd": units.show_usd,
}
# JSON carries raw values, so there the key alone tells the unit.
_UNIT_IN_KEY: dict[Show, str] = {
    "percent": "fraction",
    "flop": "flop",
    "flop_per_s": "flop_per_s",
    "bytes": "bytes",
    "bytes_per_s": "bytes_per_s",
    "duration": "s",
    "usd": "usd",
}
_RATES = ("samples_per_s", "speedup", "ratio", "flop_per_byte")  # three digits, by the end of the key
NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a column is called in JSON (`key`, with its unit) and on paper, and how its values read."""

    key: str
    header: str
    show: Show = "text"

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise ValueError(f"column {self.key!r}: no way to show {self.show!r}")
        unit = _UNIT_IN_KEY.get(self.show, "")
        if f"_{unit}_" not in f"_{self.key}_" and unit:
            raise ValueError(f"column {self.key!r} shows {self.show}, so its key should end in '_{unit}'")

    @property
    def is_numeric(self) -> bool:
        """Whether values are compared digit by digit, and so stand right-aligned."""
        return self.show not in ("text", "name", "shape")

    @property
    def may_wrap(self) -> bool:
        """Whether values still read well on two lines."""
        return self.show == "text"

    def format(self, value: Cell) -> str:
        """The value as people read it."""
        return show_value(value, self.show)


def columns_of(text: str) -> tuple[Column, ...]:
    """'rent as name, total_s: time, cost_usd: cost': keys, what stands above them (the key itself, where nothing is
    said), and how values read, where that does not follow from the key.
    """
    return tuple(_column(part) for part in text.split(", "))


def _column(text: str) -> Column:
    named, _, show = text.partition(" as ")
    key, has_header, header = named.partition(":")
    return Column(key=key, header=header.strip() if has_header else key, show=show or show_of(key))  # type: ignore[arg-type]


def show_of(key: str) -> Show:
    """How values of that key read, by its unit."""
    if key.startswith("n_"):
        return "integer"
    if key.endswith(_RATES):
        return "ratio"
    known = [show for show, unit in _UNIT_IN_KEY.items() if f"_{unit}_" in f"_{key}_"]
    return max(known, key=lambda show: len(_UNIT_IN_KEY[show]), default="text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns, rows of raw values, and remarks that belong to them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = [column.key for column in self.columns]
        if len(set(keys)) < len(keys):
            raise ValueError(f"table {self.title!r} has two columns of one key: {keys}")
        for row in self.rows:
            if len(row) != len(keys):
                raise ValueError(f"table {self.title!r}: {len(row)} cells for {len(keys)} columns: {row!r}")

    def formatted(self) -> list[list[str]]:
        """Every cell as people read it."""
        return [[column.format(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]


def show_value(value: Cell, show: Show) -> str:
    """A raw value as people read it; what is missing or not a number is a dash."""
    if value is None:
        return NOTHING
    if show not in ("text", "name", "shape"):
        if math.isnan(value):
            return NOTHING
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    return _SHOW[show](value)
