"""Stretches of time as sorted lists of (start, end): joined, cut and intersected in one pass each."""

from __future__ import annotations

from collections.abc import Iterable

Intervals = list[tuple[float, float]]


def union(intervals: Iterable[tuple[float, float]]) -> Intervals:
    """The same time without overlaps, ascending."""
    joined: Intervals = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Time that is in both; both are ascending and free of overlaps."""
    common: Intervals = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if end > start:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Time of the first that is not in the second."""
    gaps: Intervals = []
    last = float("-inf")
    for start, end in right:
        gaps.append((last, start))
        last = end
    gaps.append((last, float("inf")))
    return intersection(left, gaps)


def length(intervals: Intervals) -> float:
    return sum(end - start for start, end in intervals)
