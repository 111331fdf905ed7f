"""What is written in one cell: a number in any of the ways people write it, or a time."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from traincast.convergence.logs.fast_cells import number_in

_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_SHORTEST_DATE = 8


def value_in(cell: str, *, has_thousands: bool = True, keeps_percent: bool = False) -> float:
    """A number, '12,345', a percentage as a fraction, or a time of day as seconds since 1970; NaN for anything else.

    Where commas do not part cells, '1,234' is a decimal comma: then `has_thousands` is False. A column that is known to
    be in percent keeps its percentages.
    """
    text = cell.strip()
    bare = text.removesuffix("%").rstrip()
    value = number_in(bare)
    if value != value and "," in bare:
        is_grouped = _THOUSANDS.fullmatch(bare) and (has_thousands or bare.count(",") > 1)
        value = number_in(bare.replace(",", "" if is_grouped else "."))
    if value == value:
        return value / 100 if text.endswith("%") and not keeps_percent else value
    return np.nan if len(text) < _SHORTEST_DATE else seconds_in(text)


def seconds_in(text: str) -> float:
    """A date and time as seconds since 1970; NaN where there is no such day, as in a clock that was never set."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return np.nan
