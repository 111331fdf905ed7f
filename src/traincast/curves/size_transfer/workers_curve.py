"""Time to accuracy over workers, for one number of parameter servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ENOUGH = 1.1  # times the least time: further workers are hardly worth their price


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WorkersCurve:
    """Time over workers for one number of parameter servers; p10 and p90 are those of the epochs."""

    n_servers: int
    n_workers: Floats
    time_s: Floats
    low_s: Floats
    high_s: Floats

    @property
    def best_n_workers(self) -> int:
        """Of the numbers asked for, the fewest workers with the least time."""
        return int(self.n_workers[np.argmin(self.time_s)])

    @property
    def enough_n_workers(self) -> int:
        """The fewest workers within 10 % of the least time."""
        return int(self.n_workers[self.time_s <= _ENOUGH * self.time_s.min()].min())

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return {**data, "best_n_workers": self.best_n_workers, "enough_n_workers": self.enough_n_workers}
