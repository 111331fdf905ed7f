"""Means since the start of the epoch, told from values of single batches.

After k batches a running mean moves by (x_k - mean) / k: its moves shrink like 1/k within each epoch, and the first row
of the next epoch, one batch alone, jumps. The moves of single batches do not shrink. Which of the two is likelier is
asked of the logarithms of the moves, which outliers do not impress. Moves are second differences, so that a loss that
falls steadily does not move. The first epoch is not asked: there the loss itself falls like 1/k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.logs.log import FloatArray

_MOST_ROWS = 1 << 18
_FEWEST_MOVES = 12
_LOG_ODDS = 6.0  # at which shrinking moves are believed
_LOG_ODDS_AFTER_LEAPS = 4.0  # the same where the jumps between epochs leave little doubt
_FLOORS = (0.0, *0.5 ** np.arange(2, 9))  # the last digit, in sizes of a batch's deviation
_LEAST_VARIANCE = 1.0  # of the logarithm of a normal deviate's size it is 1.23
_JUMP, _LEAP = 3.0, 10.0  # of the first row of an epoch, in differences of the last rows before it
_NOTHING = 1e-12  # of differences of decimal fractions


def is_running_mean(values: FloatArray, steps: FloatArray, epoch_index: FloatArray, steps_per_epoch: float) -> bool:
    """Whether finite `values`, at global steps of whole epochs, are means since the start of their epoch."""
    first_later = int(np.argmax(epoch_index > epoch_index[0]))
    rows = slice(max(0, first_later - 1), first_later + _MOST_ROWS)  # the row before is the end of the first epoch
    values, epoch = values[rows], epoch_index[rows]
    if first_later == 0 or len(values) < _FEWEST_MOVES:
        return False
    k = in_epoch(steps[rows], epoch, steps_per_epoch)
    differences = np.diff(values)
    is_same_epoch = epoch[1:] == epoch[:-1]
    jump = _jump(np.abs(differences), is_same_epoch)
    if jump < _JUMP:
        return False
    is_even = is_same_epoch[1:] & is_same_epoch[:-1] & (np.diff(k, n=2) == 0)
    moves = np.abs(np.diff(differences))[is_even]
    needed = _LOG_ODDS if jump < _LEAP else _LOG_ODDS_AFTER_LEAPS
    return _log_odds(moves, k[2:][is_even], _last_digit(differences)) > needed


def in_epoch(steps: FloatArray, epoch_index: FloatArray, steps_per_epoch: float) -> FloatArray:
    """How many batches of its epoch are in the mean of each row: 1 for the first, also where steps count from 0."""
    k = steps - epoch_index * steps_per_epoch
    return k + (k.min() == 0)


def _jump(differences: FloatArray, is_same_epoch: NDArray[np.bool_]) -> float:
    """How far the first row of an epoch is from the last one before, in differences of the rows before that."""
    first = np.flatnonzero(~is_same_epoch)
    rows = np.arange(len(is_same_epoch))
    usual = np.median(np.diff(first)) if first.size > 1 else len(rows)
    turns = np.append(first, len(rows))
    is_near = is_same_epoch & (turns[np.searchsorted(first, rows)] - rows <= max(1, usual // 4))
    near = float(np.median(differences[is_near])) if is_near.any() else np.inf
    return float(np.median(differences[first])) / max(near, _NOTHING)


def _last_digit(differences: FloatArray) -> float:
    """The size of the last written digit: no difference is smaller."""
    sizes = np.abs(differences)
    sizes = sizes[sizes > _NOTHING]
    return float(sizes.min()) if sizes.size else 1.0


def _log_odds(moves: FloatArray, k: FloatArray, last_digit: float) -> float:
    """How much likelier moves of 1/k, down to what the last digit can show, are than moves of one size."""
    if len(moves) < _FEWEST_MOVES:
        return 0.0
    size = np.log(np.maximum(moves, last_digit / 4))
    flat = _squares(size)
    shrinking = min(_squares(size - 0.5 * np.log(k**-2.0 + floor**2)) for floor in _FLOORS)
    variance = max(shrinking / (len(size) - 2), _LEAST_VARIANCE)
    return (flat - shrinking) / (2 * variance)


def _squares(residuals: FloatArray) -> float:
    left = residuals - residuals.mean()
    return float(left @ left)
