"""What is written in one cell: a number in any of the ways people write it, or a time."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from traincast.logs.gate import number

_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_SHORTEST_TIME = 7
_HOURS = re.compile(r"(?:(\d+) days?, )?(\d+):([0-5]\d):([0-5]\d(?:[.,]\d+)?)")


def value_in(cell: str, *, has_thousands: bool = True, keeps_percent: bool = False) -> float:
    """A number, '12,345', a percentage as a fraction, a date as seconds since 1970, '0:01:30' as seconds; else NaN.

    Where commas do not part cells, '1,234' is a decimal comma: then `has_thousands` is False. A column that is known to
    be in percent keeps its percentages.
    """
    text = cell.strip()
    bare = text.removesuffix("%").rstrip()
    value = number(bare)
    if value != value and "," in bare:
        is_grouped = _THOUSANDS.fullmatch(bare) and (has_thousands or bare.count(",") > 1)
        value = number(bare.replace(",", "" if is_grouped else "."))
    if value == value:
        return value / 100 if text.endswith("%") and not keeps_percent else value
    return np.nan if len(text) < _SHORTEST_TIME else seconds_in(text)


def seconds_in(text: str) -> float:
    """A date and time as seconds since 1970, hours and minutes as seconds.

    NaN where there is no such day, as in a clock that was never set.
    """
    if hours := _HOURS.fullmatch(text):
        return (
            86400.0 * int(hours[1] or 0) + 3600 * int(hours[2]) + 60 * int(hours[3]) + float(hours[4].replace(",", "."))
        )
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return np.nan
