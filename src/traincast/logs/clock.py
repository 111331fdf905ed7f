"""Seconds since the start of a log, out of whatever clock it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.logs import gate, names
from traincast.logs.counting import how_often
from traincast.logs.log import FloatArray
from traincast.logs.slips import out_of_line

_SINCE_1970 = 1e8  # seconds; no run lasts three years
_MOST_STEPS_BACK = 0.05  # of the rows; a clock that goes back more often is a duration of each row
_DOUBTFUL = ("time", "time_s", "time_ms")  # of the run or of the row
_MAY_BE_OF_ROW = (*_DOUBTFUL, "train_time", "training_time", "train_time_ms", "training_time_ms", "train_runtime")
_ENOUGH = 8  # rows: as many durations do not rise one after the other by chance
_FALLS_TO = 0.5  # of what it was: a clock that begins again is back at its start


def seconds_of(column: FloatArray, name: str) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Never decreasing, NaN where unknown; None for a column that is no clock."""
    seconds = np.where(gate.is_time(column), column, np.nan)
    rows = np.flatnonzero(~np.isnan(seconds))
    if (slips := out_of_line(seconds[rows])).size and (np.diff(np.delete(seconds[rows], slips)) >= 0).all():
        seconds[rows[slips]] = np.nan  # else it begins again, or is no clock
        rows = np.delete(rows, slips)
    if rows.size == 0:
        return None, ()
    known = seconds[rows] / (1e3 if names.is_milliseconds(name) else 1.0)
    is_date = bool(np.median(known) > _SINCE_1970)
    if is_date:
        known = known / 10.0 ** (3 * max(0, round((np.log10(np.median(known)) - 9) / 3)))  # ms, us or ns since 1970
        known = np.maximum.accumulate(known - known[0])
    else:
        back = np.flatnonzero(known[1:] < known[:-1])
        if _is_of_each_row(known, back, names.plain(name)):
            return None, (f"'{name}' is the duration of each row, not a clock, and is ignored.",)
        if back.size:
            offsets = np.zeros(len(known))
            offsets[back + 1] = known[back]
            known = known + np.cumsum(offsets)
            seconds[rows] = known
            return seconds, (f"The clock '{name}' restarts {how_often(back.size)}: its times are added up.",)
    seconds[rows] = known
    return seconds, ()


def _is_of_each_row(known: FloatArray, back: NDArray[np.int64], name: str) -> bool:
    """Durations go up and down by little; a clock goes back to its start, and seldom."""
    is_doubtful = name in _DOUBTFUL and not _is_resumed(known, back)
    if back.size > (0 if is_doubtful else max(3, _MOST_STEPS_BACK * len(known))):
        return True
    if back.size and len(known) < 4 * _ENOUGH and (known[back + 1] > _FALLS_TO * known[back]).any():
        return True
    if len(known) > 3 and known[0] == known[-1] == known.max():
        return True
    return name in _MAY_BE_OF_ROW and 1 < len(known) < _ENOUGH and known.max() < 2 * known[0]


def _is_resumed(known: FloatArray, back: NDArray[np.int64]) -> bool:
    """Whether it goes up in every row, for long, and falls to its start between: the clock of a resumed run."""
    is_rising = np.count_nonzero(np.diff(known) > 0) == len(known) - 1 - back.size
    is_long = len(known) >= _ENOUGH * (back.size + 1)
    return is_rising and is_long and bool((known[back + 1] <= _FALLS_TO * known[back]).all())


def never_back(seconds: FloatArray) -> FloatArray:
    """After sorting by step: a later step was not earlier."""
    if not (np.diff(seconds[~np.isnan(seconds)]) < 0).any():
        return seconds
    highest = np.maximum.accumulate(np.where(np.isnan(seconds), -np.inf, seconds))
    return np.where(np.isnan(seconds), np.nan, highest)
