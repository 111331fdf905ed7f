"""Rows in the order of their steps: restarts, repeats and logs that several writers have shuffled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.logs.counting import count, how_often
from traincast.logs.log import FloatArray

_MOST_RESTARTS = 0.05  # of the rows; more steps back than that are no restarts


@dataclass(frozen=True, eq=False, slots=True)
class Order:
    """Which rows count, in the order of their steps; None: all, as they are."""

    rows: NDArray[np.int64] | None
    restarts: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()


def order_of(steps: FloatArray, epoch_index: FloatArray | None, resumed: tuple[int, ...] = ()) -> Order:
    """`steps` without NaN, in the order of the rows; `resumed` are rows before which the log was begun anew.

    Where a run went back, the later rows supersede the earlier ones from there on.
    """
    again = tuple(float(steps[row]) for row in resumed if 0 < row < len(steps))
    back = np.flatnonzero(steps[1:] < steps[:-1]) + 1
    known = [row for row in resumed if 0 < row < len(steps) and steps[row] <= steps[row - 1]]
    back = np.union1d(back, np.array(known, np.int64)) if known else back
    if back.size == 0:
        remarks = (f"The run was resumed at {_told(again)}.",) if again else ()
        return Order(None, again, remarks)
    if _are_repeats(steps, epoch_index, back):
        return Order(
            np.argsort(steps, kind="stable"),
            again,
            ("Steps are repeated within an epoch, one series after the other.",),
        )
    if back.size > max(3, _MOST_RESTARTS * len(steps)):
        remark = f"Rows are not in the order of their steps ({back.size} go back) and were sorted."
        return Order(np.argsort(steps, kind="stable"), again, (remark,))
    return _superseded(steps, back, again, is_sure=bool(known) and known[-1] == back[-1])


def _are_repeats(steps: FloatArray, epoch_index: FloatArray | None, back: NDArray[np.int64]) -> bool:
    """The same steps several times in most epochs, such as several validations that number their batches alike."""
    if epoch_index is None or back.size < 3:
        return False
    is_within = epoch_index[back] == epoch_index[back - 1]
    return float(is_within.mean()) > 0.8 and len(np.unique(steps)) <= 0.6 * len(steps)


def _superseded(steps: FloatArray, back: NDArray[np.int64], again: tuple[float, ...], *, is_sure: bool) -> Order:
    remarks = []
    n_rows = len(steps)
    if back[-1] == n_rows - 1 and not is_sure:  # one row alone may be a slip; it counts when more follow it
        remarks.append(
            f"The last row goes back to step {count(steps[-1], 'epoch')} and is left out until more rows follow."
        )
        n_rows, back = n_rows - 1, back[:-1]
    is_kept = np.ones(n_rows, bool)
    limit = np.inf
    for start, end in reversed(list(zip([0, *back.tolist()], [*back.tolist(), n_rows], strict=True))):
        is_kept[start:end] = steps[start:end] < limit
        limit = min(limit, float(steps[start]))
    restarts = tuple(sorted({*again, *steps[back].tolist()}))
    if back.size:
        n_left_out = n_rows - np.count_nonzero(is_kept)
        superseded = "1 row is" if n_left_out == 1 else f"{n_left_out:,} rows are"
        remarks.append(
            f"The run went back {how_often(back.size)} (to {_told(restarts)}): {superseded} superseded by "
            "later ones and left out."
        )
    return Order(np.flatnonzero(is_kept), restarts, tuple(remarks))


def _told(steps: tuple[float, ...]) -> str:
    shown = ", ".join(count(step, "epoch") for step in steps[:5])
    return f"step{'s' if len(steps) > 1 else ''} {shown}{', ...' if len(steps) > 5 else ''}"
