"""Nodes that fail and come back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.errors import InputError
from traincast.scheduling.values import is_number, told

REPAIR_S = 1800.0
CHECKPOINT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Each node fails after an exponential time with this mean, and is back `repair_s` later.

    A failure takes all jobs that have a device there; each goes back to its last checkpoint. A restart that the
    scheduler asks for saves first, so it loses nothing but time.
    """

    mean_between_s: float
    repair_s: float = REPAIR_S
    checkpoint_s: float = CHECKPOINT_S

    def __post_init__(self) -> None:
        seconds = {
            "between two failures of a node": self.mean_between_s,
            "until a failed node is back": self.repair_s,
            "between two checkpoints": self.checkpoint_s,
        }
        for what, value in seconds.items():
            if not (is_number(value) and value > 0):
                raise InputError(f"The seconds {what} should be above 0, not {told(value)}.")


class FailureClock:
    """The next failure or repair of any node, one after the other."""

    def __init__(self, failures: Failures | None, n_nodes: int, seed: int) -> None:
        self._failures = failures
        self._is_up = [True] * n_nodes
        if failures is None:
            self._next_s = np.full(n_nodes, np.inf)
            return
        self._rng = np.random.default_rng((seed, 2))
        self._next_s = self._rng.exponential(failures.mean_between_s, n_nodes)

    @property
    def next_s(self) -> float:
        return float(self._next_s.min())

    def pop(self) -> tuple[int, bool]:
        """The node whose turn it is, and whether it is up from now on."""
        assert self._failures is not None
        node = int(self._next_s.argmin())
        self._is_up[node] = not self._is_up[node]
        up = self._is_up[node]
        self._next_s[node] += self._rng.exponential(self._failures.mean_between_s) if up else self._failures.repair_s
        return node, up
