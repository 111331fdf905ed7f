"""Single points far from their neighbours: a batch of bad labels, a skipped update, a broken line of the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_N_REACH = 2  # neighbours on each side
_BLOCK = 64  # points that share one measure of noise: noise falls with the loss
_PIECE = 128 * _BLOCK  # points that are looked at together: they stay in the cache
_N_DEVIATIONS = 6.0
_DEVIATION_OF_MEDIAN = 1.4826  # of a normal distribution
_MOST_SHARE = 0.1


def far_from_neighbours(losses: Floats) -> NDArray[np.bool_]:
    """True where a loss, in order of steps, leaves the range of its two middle neighbours by 6 standard deviations.

    Of the two points before and the two after, the largest and the smallest do not count, so up to two outliers in a
    row are seen. On a curve that only falls a point is always inside that range: the steep start is never taken for an
    outlier. The first two and last two points have no such neighbours and stay. Where more than a tenth would go, the
    noise has heavy tails and all points stay.
    """
    is_far = np.zeros(len(losses), bool)
    n_inner = len(losses) - 2 * _N_REACH
    if n_inner < 2:
        return is_far
    n_pieces = max(n_inner // _PIECE, 1)
    for piece in range(n_pieces):
        start, end = piece * _PIECE, (piece + 1) * _PIECE if piece < n_pieces - 1 else n_inner
        is_far[start + _N_REACH : end + _N_REACH] = _inner_far(losses[start : end + 2 * _N_REACH])
    return is_far if np.count_nonzero(is_far) <= _MOST_SHARE * len(is_far) else np.zeros(len(losses), bool)


def _inner_far(losses: Floats) -> NDArray[np.bool_]:
    inner = losses[_N_REACH:-_N_REACH]
    low, high = _middle_neighbours(losses)
    noise = _noise(inner - 0.5 * (low + high))
    allowed = _N_DEVIATIONS * noise
    return (noise > 0) & ((inner > high + allowed) | (inner < low - allowed))


def _middle_neighbours(losses: Floats) -> tuple[Floats, Floats]:
    """The second smallest and the second largest of the four, for each point that has four."""
    a, b, c, d = losses[:-4], losses[1:-3], losses[3:-1], losses[4:]
    # Results go where operands were: on a long log, new memory costs more than the comparison.
    small_ab, large_ab, small_cd, large_cd = np.minimum(a, b), np.maximum(a, b), np.minimum(c, d), np.maximum(c, d)
    one, other = np.maximum(small_ab, small_cd, out=small_ab), np.minimum(large_ab, large_cd, out=large_ab)
    return np.minimum(one, other, out=small_cd), np.maximum(one, other, out=large_cd)


def _noise(departures: Floats) -> Floats:
    """A standard deviation for every point, from the median of its block: outliers do not widen it."""
    sizes = np.abs(departures)
    n_blocks = len(sizes) // _BLOCK
    if n_blocks < 2:
        return np.full(len(sizes), _DEVIATION_OF_MEDIAN * np.median(sizes))
    table = sizes[: n_blocks * _BLOCK].reshape(n_blocks, _BLOCK)
    medians = np.partition(table, _BLOCK // 2, axis=1)[:, _BLOCK // 2]
    lengths = np.full(n_blocks, _BLOCK)
    lengths[-1] += len(sizes) - n_blocks * _BLOCK
    return np.repeat(_DEVIATION_OF_MEDIAN * medians, lengths)
