"""What a log says for sure, whatever its curve may be: that a run has diverged, that a target was reached."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.curves.from_loss import METRIC
from traincast.logs.log import Divergence, Log, Series

Floats = NDArray[np.float64]
_SD_OF_DIFFERENCES = 0.954  # median absolute difference of two neighbours, in their standard deviations
_OF_MEDIANS = 1.25  # standard error of a median, in that of a mean
_SURE = 2.0  # standard errors
_COUNTS_FROM_0 = 100  # steps: from here on a log that ends one below its length is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """None of it may be: not diverged, not reached yet or no target, and still running."""

    divergence: Divergence | None = None
    diverged_name: str = ""  # of the series that is not finite any more
    reached_step: float | None = None  # the target was reached by then
    not_before: float = 0.0  # this step it was reached
    is_missed: bool = False  # the run is over, and no evaluation has reached it

    def bounded(self, crossings: Floats) -> Floats:
        """Steps that reach the target, as far as this leaves them open: infinite where it will not happen any more."""
        if self.reached_step is not None:
            return np.clip(crossings, min(self.not_before, self.reached_step), self.reached_step)
        if self.is_missed or self.divergence is not None:
            return np.full_like(crossings, np.inf)
        return np.maximum(crossings, self.not_before)


NOTHING_SETTLED = Settled()


def settled_in(
    log: Log, series: Series, target: float | None, total_steps: float | None, logged: Series | None = None
) -> Settled:
    """Of the series that is asked about; a training loss that is not finite any more is the end of all others too.

    What is told from a loss settles nothing by itself, as the relation may be off: `logged` are accuracies beside it.
    """
    seen = logged if series.kind == METRIC else series
    reached_step = None if target is None or seen is None or not len(seen) else _reached_step(seen, target)
    own = [] if series.kind == METRIC else [series]
    broken = next((one for one in (*own, *_training(log), series) if one.divergence is not None), None)
    return Settled(
        divergence=None if broken is None else broken.divergence,
        diverged_name="" if broken is None else broken.name,
        reached_step=reached_step,
        not_before=0.0 if target is None or seen is None else _last_without(seen, reached_step, series.kind == METRIC),
        is_missed=reached_step is None and seen is not None and not _is_noisy(seen) and is_at_end(log, total_steps),
    )


def is_at_end(log: Log, total_steps: float | None) -> bool:
    """Whether the last row is the last of the run, whose steps may count from 0."""
    if total_steps is None:
        return False
    may_count_from_0 = log.unit == "step" and total_steps >= _COUNTS_FROM_0
    return log.last_step >= (total_steps - 1 if may_count_from_0 else total_steps)


def smoothed(series: Series) -> float:
    """Where a series is now: the median of its last tenth, at least of its last three."""
    return float(np.median(series.values[-_window(series) :]))


def noise_of(values: Floats) -> float:
    """Of one value, from its neighbours in the second half: the curve itself moves little there."""
    moves = np.diff(values[len(values) // 2 :])
    return float(np.median(np.abs(moves - np.median(moves)))) / _SD_OF_DIFFERENCES if len(moves) > 2 else 0.0


def _window(series: Series) -> int:
    return max(3, min(len(series) // 10, 200))


def _training(log: Log) -> list[Series]:
    return [one for one in log.series if (one.metric, one.split) == ("loss", "train")]


def _is_noisy(series: Series) -> bool:
    """Of single batches."""
    return series.split == "train"


def _last_without(seen: Series, reached_step: float | None, is_beside: bool) -> float:
    """The last step that is known not to have been there; a curve through the values themselves knows when it was."""
    if reached_step is None:
        return float(seen.steps[-1]) if len(seen) else 0.0
    before = seen.steps[seen.steps < reached_step]
    return float(before[-1]) if is_beside and len(before) and not _is_noisy(seen) else 0.0


def _reached_step(series: Series, target: float) -> float | None:
    """An evaluation reaches it by one value, as records are kept; single batches by medians beyond their noise."""
    steps, values, margin = series.steps, series.values, 0.0
    if _is_noisy(series):
        window = min(_window(series), len(series))
        n_blocks = len(series) // window  # to the last row; what is left over at the start is no whole block
        values = np.median(values[len(values) - n_blocks * window :].reshape(n_blocks, window), axis=1)
        steps = steps[::-window][:n_blocks][::-1]
        margin = _SURE * _OF_MEDIANS * noise_of(series.values) / math.sqrt(window)
    is_there = values >= target + margin if series.is_rising else values <= target - margin
    return float(steps[np.argmax(is_there)]) if is_there.any() else None
