"""Durations as people type them: 12h, 90min, 1d12h, 45s, 2 days."""

from __future__ import annotations

import re

from traincast.errors import InputError

_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}  # by their first letter
_PART = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*"
    r"(?P<unit>d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])\s*"
)
_MOST_S = 1e9


def seconds_of(text: str, flag: str) -> float:
    """Parts with units, added up; a number alone has no unit and is refused."""
    words, place, total_s = text.strip().lower(), 0, 0.0
    while place < len(words):
        part = _PART.match(words, place)
        if part is None:
            break
        total_s += float(part["number"]) * _UNITS_S[part["unit"][0]]
        place = part.end()
    if place < len(words) or not 0 < total_s <= _MOST_S:
        raise InputError(f"{flag} '{text}' is no duration above 0: write 12h, 90min, 1d12h or 45s.")
    return total_s
