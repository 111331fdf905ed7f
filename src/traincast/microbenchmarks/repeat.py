"""Timing one thing again and again: often enough to trust the median, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

N_WARM_UP = 3
FEWEST, MOST = 7, 200
ENOUGH_S, LONGEST_S = 0.15, 3.0


def repeats(clock: Callable[[], float] = time.perf_counter) -> Iterator[int]:
    """Numbers of repetitions: at least 7, more until 0.15 s have passed, never more than 200 or for longer than 3 s.

    Three come whatever happens: a single number has no spread.
    """
    start_s = clock()
    for number in range(MOST):
        elapsed_s = clock() - start_s
        if (number >= FEWEST and elapsed_s > ENOUGH_S) or (number >= 3 and elapsed_s > LONGEST_S):
            return
        yield number
