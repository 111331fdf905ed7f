"""Random work for benchmarks: the same for the same seed on every machine and version of Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from traincast.errors import InputError
from traincast.records.record import Scalar, Settings, canonical
from traincast.records.work_list import Task

Draw = Callable[[random.Random], dict[str, Scalar]]
FLOAT_BYTES = 4
MOST_ROWS = 1_000_000  # all are drawn before the first is timed
_MOST_BYTES = {"cpu": 256e6, "cuda": 2e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What a benchmark draws its tasks from, and how large they may be."""

    kind: str  # of the tasks
    draws: Sequence[Draw]
    work: Callable[[Settings], tuple[float, float]]  # flop and bytes of what was drawn
    most_flop: Mapping[str, float]  # by kind of device
    same_in_all: Settings

    def tasks(self, n: int, seed: int, device: str) -> list[Task]:
        """`n` different tasks, as many of each draw; the same for the same seed and kind of device."""
        if n < 1:
            raise InputError(f"A benchmark needs at least one row, not {n}.")
        if n > MOST_ROWS:
            raise InputError(f"A benchmark may have at most {MOST_ROWS:,} rows (these take weeks), not {n:,}.")
        return [
            Task(self.kind, {**drawn, **self.same_in_all, "device": device})
            for drawn in self._distinct(n, seed, device.partition(":")[0])
        ]

    def _distinct(self, n: int, seed: int, device_kind: str) -> Iterator[dict[str, Scalar]]:
        """Each draw in turn. More of them begin with the fewer, so a campaign can grow."""
        source = random.Random(seed)
        seen: set[str] = set()
        while len(seen) < n:
            drawn = self.draws[len(seen) % len(self.draws)](source)
            if self._fits(drawn, device_kind) and (text := canonical(drawn)) not in seen:
                seen.add(text)
                yield drawn

    def _fits(self, drawn: Settings, device_kind: str) -> bool:
        flop, moved_bytes = self.work(drawn)
        most_flop, most_bytes = (most.get(device_kind, math.inf) for most in (self.most_flop, _MOST_BYTES))
        return flop <= most_flop and moved_bytes <= most_bytes


def size(source: random.Random, low: int, high: int) -> int:
    """Every power of ten as often as the next; half of them multiples of 8, which is what networks are built of."""
    drawn = round(math.exp(source.uniform(math.log(low), math.log(high))))
    return drawn // 8 * 8 if drawn >= 8 and source.random() < 0.5 else drawn
