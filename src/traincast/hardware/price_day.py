"""The day that a price is of."""

from __future__ import annotations

import datetime

from traincast.errors import FileFormatError
from traincast.hardware.machines import all_machines

_MOST_AHEAD = datetime.timedelta(days=365)  # of today, or of our own prices where a clock is behind them


def price_day(given: str | datetime.date, where: str) -> str:
    """As our tables write it; one sentence for what is no day, or one that nobody can know a price of."""
    text = given.date().isoformat() if isinstance(given, datetime.datetime) else str(given)
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        raise FileFormatError(f"{where} is '{text}', not a day such as 2026-11-16.") from None
    known = (datetime.date.fromisoformat(one.price_date) for one in all_machines() if one.price_date)
    if day > max(datetime.date.today(), *known) + _MOST_AHEAD:
        raise FileFormatError(f"{where} is {day}, more than a year ahead: give the day when the price was looked up.")
    return day.isoformat()
