"""How long the images of a batch take to come, by really reading some."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

from traincast.measurement.heap import keep_memory
from traincast.recipes.data.batches import Batches

_N_WARMUPS, _N_TIMED, _ENOUGH_S = 2, 8, 2.0
_MOST_BYTES = 2**30  # of a batch that is read only to be timed


def input_s_per_sample(batches: Batches) -> float:
    """The fastest of a few batches, read as training reads them, epoch after epoch; two seconds are enough of it.

    The first ones also fill caches, and are left out if there is time for others. Step times are forecast for a machine
    that does nothing else, and so is this: of so few batches, a busy moment can slow most by a hundred times. Of very
    large images, batches of fewer are read: a forecast must not need the memory of what it forecasts.
    """
    keep_memory()
    image_bytes = 3 * batches.data.image_side**2 * 4  # three channels of float32
    batches = replace(batches, batch_size=min(batches.batch_size, max(_MOST_BYTES // image_bytes, 1)))
    durations_s: list[float] = []
    began_s = last_s = time.perf_counter()
    for _, labels in itertools.chain.from_iterable(map(batches.epoch, itertools.count())):
        now_s = time.perf_counter()
        durations_s.append((now_s - last_s) / len(labels))
        last_s = now_s
        if len(durations_s) >= _N_WARMUPS + _N_TIMED or now_s - began_s > _ENOUGH_S:
            break
    return min(durations_s[_N_WARMUPS:] or durations_s)
