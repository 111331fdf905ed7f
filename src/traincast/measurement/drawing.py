"""Random sizes for benchmarks: the same for the same seed on every machine and version of Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from traincast.measurement.record import Scalar, Settings, canonical

Draw = Callable[[random.Random], dict[str, Scalar]]


def size(source: random.Random, low: int, high: int) -> int:
    """Every power of ten as often as the next; half of them multiples of 8, which is what networks are built of."""
    drawn = round(math.exp(source.uniform(math.log(low), math.log(high))))
    return drawn // 8 * 8 if drawn >= 8 and source.random() < 0.5 else drawn


def distinct(n: int, draws: list[Draw], fits: Callable[[Settings], bool], *, seed: int) -> Iterator[dict[str, Scalar]]:
    """`n` different draws that fit, each kind in turn. More of them begin with the fewer, so a campaign can grow."""
    source = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < n:
        drawn = draws[len(seen) % len(draws)](source)
        if fits(drawn) and (text := canonical(drawn)) not in seen:
            seen.add(text)
            yield drawn
