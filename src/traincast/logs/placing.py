"""Epoch and step of each row as one global step.

A step may run through or begin again in every epoch; an epoch may count from 0 or from 1, whole or with a fraction;
either may be missing. A step that counts from 0 and one that counts from 1 are not told apart: the loss of step k is
that of weights after k updates in one and k - 1 in the other, and nobody can see the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.logs.log import FloatArray

_PIECE_ROWS = 1 << 16
_TOO_WIDE = 0.1  # of the steps of an epoch: what is less sure is not told


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Placed:
    """Where each row is in the run; NaN where that cannot be known."""

    steps: FloatArray
    epochs: FloatArray | None = None  # completed ones, with their fraction
    epoch_index: FloatArray | None = None  # the epoch that a row is of, whole
    steps_per_epoch: float | None = None
    remarks: tuple[str, ...] = ()


def place(
    step: FloatArray | None,
    epoch: FloatArray | None,
    *,
    n_rows: int,
    steps_per_epoch: float | None = None,
    is_given: bool = False,
    rows_per_epoch: float = 1.0,
) -> Placed:
    """`steps_per_epoch` is what the user or the log says. `rows_per_epoch` is of the column that has most."""
    step, epoch = (None if column is None or np.isnan(column).all() else column for column in (step, epoch))
    if step is None and epoch is None:
        remark = "The log has neither steps nor epochs: rows are counted as steps."
        return Placed(steps=np.arange(1.0, n_rows + 1), steps_per_epoch=steps_per_epoch, remarks=(remark,))
    if step is None:
        assert epoch is not None
        return _by_epoch(epoch, steps_per_epoch, rows_per_epoch)
    if epoch is None:
        return _by_step(step, steps_per_epoch, is_given=is_given)
    if not _is_whole(epoch):
        return _by_fraction(step, epoch, steps_per_epoch)
    return _by_both(step, epoch, steps_per_epoch, is_given=is_given)


def begins_again(step: FloatArray, epoch: FloatArray) -> bool:
    """Whether the step is counted within the epoch."""
    is_known = ~(np.isnan(step) | np.isnan(epoch))
    step, epoch = _kept(step, is_known), _kept(epoch, is_known)
    up = np.flatnonzero(epoch[1:] > epoch[:-1]) + 1
    return bool(up.size) and float(np.mean(step[up] <= step[up - 1])) > 0.5


def stride_of(step: FloatArray) -> float:
    """How many steps usually lie between two rows."""
    forward = np.diff(step[: 1 << 20])
    forward = forward[forward > 0]
    return float(np.median(forward)) if forward.size else 1.0


def _by_epoch(epoch: FloatArray, steps_per_epoch: float | None, rows_per_epoch: float) -> Placed:
    """Rows that only know their epoch lie at its end."""
    is_whole = _is_whole(epoch)
    if is_whole and rows_per_epoch >= 2.5:
        counted = _by_both(_count_in_epoch(epoch), epoch, steps_per_epoch, is_given=False)
        return replace(counted, remarks=(*counted.remarks, "The log has no steps: the rows of each epoch are counted."))
    is_from_zero = is_whole and np.nanmin(epoch) == 0
    completed = epoch + 1 if is_from_zero else epoch
    remarks = ["Epochs are numbered from 0: the row of an epoch is placed at its end."] if is_from_zero else []
    if steps_per_epoch is None:
        remarks.append("The log has no steps: epochs are used as steps unless steps_per_epoch is given.")
    return Placed(
        steps=completed * steps_per_epoch if steps_per_epoch else completed,
        epochs=completed,
        steps_per_epoch=steps_per_epoch,
        remarks=tuple(remarks),
    )


def _by_step(step: FloatArray, steps_per_epoch: float | None, *, is_given: bool) -> Placed:
    known = _kept(step, ~np.isnan(step))
    drops = np.flatnonzero(known[1:] < known[:-1]) + 1
    peaks = known[drops - 1]
    if drops.size >= 2 and (peaks == peaks[0]).all() and (known[drops] == known[0]).all():
        epoch = np.full(len(step), np.nan)
        epoch[~np.isnan(step)] = np.searchsorted(drops, np.arange(len(known)), side="right")
        placed = _by_both(step, epoch, steps_per_epoch, is_given=is_given)
        remark = f"Steps begin again {drops.size} times after {peaks[0]:g}: each restart is read as a new epoch."
        return replace(placed, remarks=(remark, *placed.remarks))
    return Placed(
        steps=step, epochs=step / steps_per_epoch if steps_per_epoch else None, steps_per_epoch=steps_per_epoch
    )


def _by_fraction(step: FloatArray, epoch: FloatArray, steps_per_epoch: float | None) -> Placed:
    """Epochs with a fraction are completed ones, and then the step runs through."""
    both = epoch * 0 + step
    if steps_per_epoch is None and not np.isnan(both).all():
        far, near = np.nanargmax(both), np.nanargmin(both)
        span = epoch[far] - epoch[near]
        steps_per_epoch = _rounded((step[far] - step[near]) / span) if span > 0 else None
    steps = np.where(np.isnan(step), epoch * (steps_per_epoch or np.nan), step)
    epochs = np.where(np.isnan(epoch), steps / (steps_per_epoch or np.nan), epoch)
    return Placed(steps=steps, epochs=epochs, steps_per_epoch=steps_per_epoch)


def _by_both(step: FloatArray, epoch: FloatArray, steps_per_epoch: float | None, *, is_given: bool) -> Placed:
    is_known = ~(np.isnan(step) | np.isnan(epoch))
    if begins_again(step, epoch):
        return _within_epochs(step, epoch, _kept(step, is_known), steps_per_epoch, is_given=is_given)
    if not is_known.any():
        return _by_epoch(epoch, steps_per_epoch, 1.0)
    return _running_through(step, epoch, is_known, steps_per_epoch)


def _within_epochs(
    step: FloatArray, epoch: FloatArray, known: FloatArray, steps_per_epoch: float | None, *, is_given: bool
) -> Placed:
    first = 0.0 if np.nanmin(epoch) == 0 else 1.0
    highest = float(known.max())
    if is_given and steps_per_epoch is not None and highest > steps_per_epoch:
        raise InputError(
            f"An epoch of {steps_per_epoch:g} steps cannot be right: the log has step {highest:g} within one."
        )
    remarks = []
    if steps_per_epoch is None or highest > steps_per_epoch:
        steps_per_epoch = highest + (known.min() == 0)
        stride = stride_of(known)
        remarks.append(f"Steps restart in every epoch: an epoch has {steps_per_epoch:g} of them.")
        if stride > 1:
            remarks.append(
                f"Only every {stride:g}th step is logged: an epoch may have up to "
                f"{steps_per_epoch + stride - 1:g} steps; give steps_per_epoch= if you know it."
            )
    index = epoch if first == 0 else epoch - first
    steps = index * steps_per_epoch
    at_end = np.isnan(step)
    steps += np.where(at_end, steps_per_epoch, step) if at_end.any() else step
    return Placed(
        steps=steps,
        epochs=steps / steps_per_epoch,
        epoch_index=index,
        steps_per_epoch=steps_per_epoch,
        remarks=tuple(remarks),
    )


def _running_through(
    step: FloatArray, epoch: FloatArray, is_known: NDArray[np.bool_], steps_per_epoch: float | None
) -> Placed:
    known_step, known_epoch = _kept(step, is_known), _kept(epoch, is_known)
    up = np.flatnonzero(known_epoch[1:] > known_epoch[:-1]) + 1
    n_places = 1 + np.count_nonzero(np.diff(known_step))
    first_epoch = 0.0 if np.nanmin(epoch) == 0 else 1.0
    index = epoch - first_epoch
    remarks: tuple[str, ...] = ()
    if up.size and n_places <= 1.5 * (up.size + 1):  # one place an epoch: at its end
        if steps_per_epoch is None:
            span = known_epoch[up[-1]] - known_epoch[0]
            steps_per_epoch = _rounded((known_step[up[-1]] - known_step[0]) / span) if span > 0 else None
            remarks += _if_uneven(np.diff(known_step), steps_per_epoch)
        is_before = known_epoch[0] == 0 and known_step[0] > 0.5 * (steps_per_epoch or known_step[0])
        completed = epoch + 1 if is_before else epoch
        at_end = completed
    else:
        if steps_per_epoch is None:
            steps_per_epoch, found, remarks = _steps_of_epochs(known_step, known_epoch)
            index = epoch - (first_epoch if found is None else found)
        completed, at_end = None, index + 1
    steps = (
        np.where(is_known | ~np.isnan(step), step, at_end * (steps_per_epoch or np.nan)) if not is_known.all() else step
    )
    if completed is None and steps_per_epoch is not None:
        completed = steps / steps_per_epoch
    return Placed(steps=steps, epochs=completed, epoch_index=index, steps_per_epoch=steps_per_epoch, remarks=remarks)


def _if_uneven(each: FloatArray, mean: float | None) -> tuple[str, ...]:
    each = each[each > 0]
    if mean is None or not each.size or each.max() - each.min() <= 0.1 * mean:
        return ()
    return (f"Epochs have from {each.min():g} to {each.max():g} steps: steps_per_epoch is the mean.",)


def _steps_of_epochs(step: FloatArray, epoch: FloatArray) -> tuple[float | None, float | None, tuple[str, ...]]:
    """Steps of an epoch, the number of the first epoch where that follows, and what is not sure.

    None where the rows around the turns of epochs are too far apart to tell.
    """
    is_other = np.concatenate(([True], (np.diff(step) != 0) | (np.diff(epoch) != 0)))
    step, epoch = _kept(step, is_other), _kept(epoch, is_other)
    up = np.flatnonzero(epoch[1:] > epoch[:-1]) + 1
    if up.size == 0 or (epoch < 0).any():
        return None, None, ()
    found = _possible(step, epoch, up)
    if not found:  # epochs of different lengths, or counters that do not begin together
        return _steps_between(step, epoch, up), None, ()
    least, most = min(least for _, least, _ in found), max(most for _, _, most in found)
    first_epoch = found[0][0]
    told = (
        f"By the rows around their ends, epochs have {least:g} to {most:g} steps; give steps_per_epoch= if you know it."
    )
    apart = {*np.diff(step[up]), *np.diff(step[up - 1])}
    if len(apart) == 1 and least <= (each := float(apart.pop())) <= most:  # every epoch has its rows at the same places
        return each, first_epoch, () if least == most else (told,)
    if most - least > _TOO_WIDE * least:
        return None, None, ()
    return float(np.floor((least + most) / 2)), first_epoch, () if least == most else (told,)


def _possible(step: FloatArray, epoch: FloatArray, up: NDArray[np.int64]) -> list[tuple[float, float, float]]:
    """The fewest and the most steps that all epochs can have, for every row to be in its own, by the first epoch.

    Steps may count from 0 or from 1, and in rows of every 5th step 4 is of the former: what its first row says of this
    is asked first. A log that begins later may count epochs and steps either way. A row out of turn before the first of
    the next epoch, such as a validation, is at the end of its epoch if that fits all of them.
    """
    stride, ends = stride_of(step), np.append(up - 1, len(step) - 1)
    lowest, is_later = float(epoch.min()), step[0] > stride
    is_from_zero = step[0] == 0 or (stride > 1 and step[0] % stride == stride - 1)
    is_out_of_turn = bool((np.diff(step, prepend=step[0] - stride)[up - 1] != stride).any())
    found = []
    for first_epoch in (0.0, 1.0) if is_later and lowest > 0 else (min(lowest, 1.0),):
        index = epoch - first_epoch
        for first in (0, 1) if is_from_zero else (1, 0):
            each = (step[ends] - first + 1) / (index[ends] + 1)
            least, most = np.ceil(each.max()), np.floor(((step[up] - first) / index[up]).min())
            if 1 <= least <= most:
                is_end = is_out_of_turn and (each[:-1] == least).all()
                found.append((first_epoch, float(least), float(least if is_end else most)))
    return found if is_later else found[:1]


def _steps_between(step: FloatArray, epoch: FloatArray, up: NDArray[np.int64]) -> float | None:
    """The same from the first rows of the epochs; the mean evens out what thinning moves."""
    starts, n_epochs = np.concatenate((step[:1], step[up])), np.diff(np.concatenate((epoch[:1], epoch[up])))
    if up.size > 1:
        starts, n_epochs = starts[1:], n_epochs[1:]
    each = np.diff(starts) / n_epochs.clip(1)
    usual = float(np.median(each))
    gap = float(np.median(step[up] - step[up - 1]))
    is_even = up.size > 1 and np.median(np.diff(step[up - 1]) / n_epochs.clip(1)) == usual  # its last rows agree
    if usual <= 0 or (gap - 1 > 0.1 * usual * len(each) and not is_even):
        return None
    alike = each[np.abs(each - usual) <= 0.5 * usual]
    return _rounded(float(alike.mean())) if alike.size else None  # half of them short and half long


def _count_in_epoch(epoch: FloatArray) -> FloatArray:
    """1, 2, 3, ... within each epoch, in the order of the rows."""
    rows = np.arange(len(epoch))
    is_first = np.concatenate(([True], epoch[1:] != epoch[:-1]))
    return (rows - np.maximum.accumulate(np.where(is_first, rows, 0)) + 1).astype(float)


def _is_whole(epoch: FloatArray) -> bool:
    """Piece by piece: the first fraction decides, and long columns need no second one."""
    pieces = (epoch[start : start + _PIECE_ROWS] for start in range(0, len(epoch), _PIECE_ROWS))
    return all(bool((np.isnan(piece) | (piece == np.floor(piece))).all()) for piece in pieces)


def _kept(values: FloatArray, is_kept: NDArray[np.bool_]) -> FloatArray:
    """Some values; without a copy where these are all."""
    return values if is_kept.all() else values[is_kept]


def _rounded(value: float) -> float:
    """A whole number of steps, where it nearly is one."""
    return float(round(value)) if abs(value - round(value)) < 0.005 * abs(value) else float(value)
