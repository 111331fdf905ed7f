"""Lists of whole numbers as people type them: 1,2,4,8 or 1-20."""

from __future__ import annotations

import re

from traincast.errors import InputError

_PART = re.compile(r"\s*(?P<first>[0-9]{1,7})\s*(?:-\s*(?P<last>[0-9]{1,7})\s*)?")
_MOST = 10_000


def whole_numbers(text: str, flag: str) -> list[int]:
    """Each once, ascending; a range has both its ends."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first = 0 if match is None else int(match["first"])
        last = first if match is None or match["last"] is None else int(match["last"])
        if first < 1 or last < first or last - first >= _MOST:
            raise InputError(f"{flag} '{text}' is no list of whole numbers from 1: write 1,2,4,8 or 1-8.")
        found.update(range(first, last + 1))
    return sorted(found)
