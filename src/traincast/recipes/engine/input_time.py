"""How long the images of a batch take to come, by really reading some."""

from __future__ import annotations

import itertools
import time

from traincast.measurement.heap import keep_memory
from traincast.recipes.data.batches import Batches

_N_WARMUPS, _N_TIMED, _ENOUGH_S = 2, 8, 2.0


def input_s_per_sample(batches: Batches) -> float:
    """The fastest of a few batches, read as training reads them, epoch after epoch; two seconds are enough of it.

    The first ones also fill caches, and are left out if there is time for others. Step times are forecast for a machine
    that does nothing else, and so is this: of so few batches, a busy moment can slow most by a hundred times.
    """
    keep_memory()
    durations_s: list[float] = []
    began_s = last_s = time.perf_counter()
    for _, labels in itertools.chain.from_iterable(map(batches.epoch, itertools.count())):
        now_s = time.perf_counter()
        durations_s.append((now_s - last_s) / len(labels))
        last_s = now_s
        if len(durations_s) >= _N_WARMUPS + _N_TIMED or now_s - began_s > _ENOUGH_S:
            break
    return min(durations_s[_N_WARMUPS:] or durations_s)
