"""Seconds since the start of a log, out of whatever clock it has."""

from __future__ import annotations

import numpy as np

from traincast.convergence.logs import names
from traincast.convergence.logs.log import FloatArray

_SINCE_1970 = 1e8  # seconds; no run lasts three years
_MOST_STEPS_BACK = 0.05  # of the rows; a clock that goes back more often is a duration of each row
_DOUBTFUL = ("time", "time_s", "time_ms")  # of the run or of the row


def seconds_of(column: FloatArray, name: str) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Never decreasing, NaN where unknown; None for a column that is no clock."""
    seconds = np.where(np.isinf(column), np.nan, column)
    rows = np.flatnonzero(~np.isnan(seconds))
    if rows.size == 0:
        return None, ()
    known = seconds[rows] / (1e3 if names.is_milliseconds(name) else 1.0)
    is_date = bool(np.median(known) > _SINCE_1970)
    if is_date:
        known = known / 10.0 ** (3 * max(0, round((np.log10(np.median(known)) - 9) / 3)))  # ms, us or ns since 1970
        known = np.maximum.accumulate(known - known[0])
    else:
        back = np.flatnonzero(known[1:] < known[:-1])
        most = 0 if names.plain(name) in _DOUBTFUL else max(3, _MOST_STEPS_BACK * len(known))
        if back.size > most or (len(known) > 3 and known[0] == known[-1] == known.max()):
            return None, (f"'{name}' is the duration of each row, not a clock: it is not used.",)
        if back.size:
            offsets = np.zeros(len(known))
            offsets[back + 1] = known[back]
            known = known + np.cumsum(offsets)
            seconds[rows] = known
            return seconds, (f"The clock '{name}' begins again {back.size} times: its times are added up.",)
    seconds[rows] = known
    return seconds, ()


def never_back(seconds: FloatArray) -> FloatArray:
    """After sorting by step: a later step was not earlier."""
    if not (np.diff(seconds[~np.isnan(seconds)]) < 0).any():
        return seconds
    highest = np.maximum.accumulate(np.where(np.isnan(seconds), -np.inf, seconds))
    return np.where(np.isnan(seconds), np.nan, highest)
