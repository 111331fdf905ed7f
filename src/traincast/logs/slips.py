"""Rows out of line: one that goes back, or far ahead, while the next goes on where the one before was.

A run that is resumed goes on from where it went back to, row by row, and supersedes what it repeats. A row alone that
jumps is damage, such as a counter that lost its first digits, and says nothing about the rows around it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.logs import gate
from traincast.logs.argument_checks import MOST
from traincast.logs.counters import epoch_name, step_name
from traincast.logs.log import FloatArray
from traincast.logs.sheet import Sheet

_STRIDES = 2.0  # usual ones: what is off by less may be a run that repeats a row
_MOST = 0.05  # of the rows, or three: more of them are how the log is written
_MOST_BACK = 0.25  # of the rows: where more go back anyway, writers have shuffled them
_FAR = 100.0  # times as far as all rows before: nobody goes there in one row
_FEWEST = 8  # rows, before the last is judged so


def without_slips(sheet: Sheet) -> tuple[Sheet, list[str]]:
    """The sheet without rows whose step or epoch is none, or is out of line, and what was left out."""
    remarks = []
    for name, what in ((step_name(sheet), "step"), (epoch_name(sheet), "epoch")):
        if name is None:
            continue
        column = sheet.columns[name]
        is_known = ~np.isnan(column)
        is_wrong = is_known & ~gate.is_place(column)
        if (n_wrong := int(is_wrong.sum())) == int(is_known.sum()):
            continue  # nothing is a place here: the column is no counter
        if n_wrong:
            rows, have, they = _words(n_wrong)
            remarks.append(
                f"{rows} {have} a number in '{name}' that is not a valid {what} (below 0, above {MOST:g} or not "
                f"finite): {they} left out."
            )
        rows_known = np.flatnonzero(is_known & ~is_wrong)
        slips = rows_known[out_of_line(column[rows_known])]
        is_wrong[slips] = True
        if len(slips):
            rows, have, they = _words(len(slips))
            first = f"{column[slips[0]]:,.15g}"
            remarks.append(f"{rows} {have} a {what} out of line (first {first}): {they} left out.")
        if is_wrong.any():
            sheet = sheet.rows(~is_wrong)
    return sheet, remarks


def out_of_line(places: FloatArray) -> NDArray[np.int64]:
    """Which of these, without NaN, are; none where there are too many to be slips."""
    if len(places) < 3:
        return np.zeros(0, np.int64)
    moves = np.diff(places)
    if (moves >= 0).all() and not _is_far(places):
        return np.zeros(0, np.int64)
    forward = moves[moves > 0]
    tolerance = _STRIDES * float(np.median(forward)) if forward.size else 0.0
    before, here, after = places[:-2], places[1:-1], places[2:]
    is_off = (here < before - tolerance) | (here > after + tolerance)
    found = np.flatnonzero(is_off & (before <= after)) + 1
    if _is_far(places):
        found = np.append(found, len(places) - 1)
    n_back = np.count_nonzero(np.diff(np.delete(places, found)) < 0)
    is_written_so = len(found) > max(3, _MOST * len(places)) or n_back > _MOST_BACK * len(places)
    return np.zeros(0, np.int64) if is_written_so else found


def _is_far(places: FloatArray) -> bool:
    """Whether the last is where nobody can be yet; it counts when more rows follow it."""
    furthest = float(places[:-1].max())
    return len(places) >= _FEWEST and furthest > 0 and bool(places[-1] > _FAR * furthest)


def _words(n_rows: int) -> tuple[str, str, str]:
    return ("1 row", "has", "it is") if n_rows == 1 else (f"{n_rows:,} rows", "have", "they are")
