"""Where the seconds of a run go."""

from __future__ import annotations

import time
from collections.abc import Mapping

PARTS = ("train", "input", "evaluate", "other")


class Clock:
    """Every instant belongs to one part."""

    def __init__(self) -> None:
        self.spent_s = dict.fromkeys(PARTS, 0.0)
        self._last_s = time.perf_counter()

    def add(self, spent_s: Mapping[str, float]) -> None:
        """What was spent before this process."""
        for part in PARTS:
            self.spent_s[part] += float(spent_s[part])

    def lap(self, part: str) -> None:
        """The time since the last lap was this part's."""
        now_s = time.perf_counter()
        self.spent_s[part] += now_s - self._last_s
        self._last_s = now_s

    @property
    def total_s(self) -> float:
        return sum(self.spent_s.values())
