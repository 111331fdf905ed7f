"""Which columns are written in percent, though nothing in them says so: one unit for a whole column.

A column that ever goes above 1 is in percent from its first row on, also where those rows are superseded when a run is
begun again. So are the columns beside it that keep pace with it: of a top-1 and a top-5 accuracy in percent the first
stays below 1 for longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from traincast.logs import names
from traincast.logs.log import FloatArray
from traincast.logs.sheet import Sheet

_ONE, _HUNDRED = 1.0001, 100.01  # with room for rounding
_KEEPS_PACE = 0.1  # of the other: two accuracies in one unit are nearer, and in two they are a hundredfold apart
_ACCURACY = re.compile(r"(^|_)(acc\d*|accurac(y|ies)|top\d*|prec\d+)(_|$)")


def in_percent(sheets: Iterable[Sheet], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names of columns in percent; `known` are those that were, when less of the log was read."""
    found = set(known)
    shares = [_shares(sheet) for sheet in sheets]
    for name, column in ((name, column) for some in shares for name, column in some.items()):
        highest = float(np.max(column, where=np.isfinite(column), initial=-np.inf))
        if highest > _HUNDRED:
            found.discard(name)
        elif highest > _ONE or names.is_percent(name):
            found.add(name)
    surely = frozenset(found)
    for some in shares:
        for name in some.keys() - surely:
            beside = [other for other in some.keys() & surely if _kind(other) == _kind(name)]
            if any(_keeps_pace(some[name], some[other]) for other in beside):
                found.add(name)
    return frozenset(found)


def is_neither(highest: float) -> bool:
    """Whether a share goes so far that it is no fraction and no percentage."""
    return highest > _HUNDRED


def _shares(sheet: Sheet) -> dict[str, FloatArray]:
    return {
        name: column
        for name, column in sheet.columns.items()
        if (metric := names.metric_of(name)) is not None and names.is_share(metric.metric)
    }


def _kind(name: str) -> str:
    """What is written in one unit: all accuracies of a log, or one metric of all splits."""
    metric = names.metric_of(name)
    assert metric is not None
    return "accuracy" if _ACCURACY.search(metric.metric) else metric.metric


def _keeps_pace(column: FloatArray, other: FloatArray) -> bool:
    """Whether a column ends where the other one was at that time, and not a hundredfold below."""
    rows, of_other = np.flatnonzero(np.isfinite(column)), np.flatnonzero(np.isfinite(other))
    if not rows.size or not of_other.size:
        return False
    at = of_other[max(0, int(np.searchsorted(of_other, rows[-1], side="right")) - 1)]
    return bool(column[rows[-1]] > _KEEPS_PACE * other[at])
