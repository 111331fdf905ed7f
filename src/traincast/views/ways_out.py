"""How a language model that does not fit could: a sentence, and a table, cheapest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.table import Table, columns_of
from traincast.units import show_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincast.planning.ways_out import WayOut

_MOST_ROWS = 8
_COLUMNS = columns_of(
    "change as name, freed_bytes: frees, needed_bytes: needs, fits as name, cost: device time as name, catch: the catch"
)


def ways_table(ways: Sequence[WayOut]) -> tuple[Table, ...]:
    if not ways:
        return ()
    rows = tuple(
        (
            way.change,
            way.freed_bytes,
            way.forecast.peak_memory_bytes,
            "yes" if way.fits else "NO",
            _cost(way),
            way.catch,
        )
        for way in ways[:_MOST_ROWS]
    )
    note = "Device time is that of one sample on all devices, against the question as asked."
    return (Table(title="Ways to make it fit, cheapest first", columns=_COLUMNS, rows=rows, notes=(note,)),)


def ways_sentence(ways: Sequence[WayOut]) -> tuple[str, ...]:
    """The cheapest that fits, or the one that comes nearest."""
    if not ways:
        return ()
    best = ways[0]
    if best.fits:
        return (f"Cheapest way to fit: {best.change} frees {show_bytes(best.freed_bytes)} {_price(best)}.",)
    nearest = min(ways, key=lambda way: way.forecast.peak_memory_bytes)
    left = show_bytes(nearest.forecast.peak_memory_bytes)
    return (f"No way to fit was found; nearest is {nearest.change}, which still needs {left}.",)


def _price(way: WayOut) -> str:
    more = way.device_time_fraction
    if abs(more) < 0.005:
        return "at no cost in time"
    return f"for {100 * more:.0f} % more device time" if more > 0 else f"and takes {-100 * more:.0f} % less device time"


def _cost(way: WayOut) -> str:
    return f"{100 * way.device_time_fraction:+.0f} %"
