"""A column that grows without being copied each time someone looks at it."""

from __future__ import annotations

import numpy as np

from traincast.logs.log import FloatArray


class GrowingColumn:
    """Numbers that are appended. What was given out before stays as it was: later numbers are written behind it."""

    def __init__(self, n_expected: int = 1024) -> None:
        self._values = np.empty(n_expected)  # pages that are never written take no memory
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def append(self, values: FloatArray) -> None:
        n_after = self._n + len(values)
        if n_after > len(self._values):
            grown = np.empty(max(n_after, 2 * len(self._values)))
            grown[: self._n] = self._values[: self._n]
            self._values = grown
        self._values[self._n : n_after] = values
        self._n = n_after

    @property
    def values(self) -> FloatArray:
        return self._values[: self._n]
