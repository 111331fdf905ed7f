"""Which points of a chart can have their names beside them without one name lying on another."""

from __future__ import annotations

import math
from collections.abc import Sequence

# In shares of the axes' lengths, on the smallest picture there is: an image.
_LETTER, _LINE, _GAP = 0.0078, 0.04, 0.009
_EDGE = 0.05  # what an axis goes on beyond its last point

Box = tuple[float, float, float, float]  # left, right, bottom, top, in the same shares
# As plotly calls them: (which way a name's middle is from the point, in its own widths and in lines).
_SIDES = {
    "middle right": (0.5, 0.0),
    "top center": (0.0, 0.9),
    "bottom center": (0.0, -0.9),
    "middle left": (-0.5, 0.0),
}


def readable(points: Sequence[tuple[float, float, str]], *, log_x: bool, log_y: bool) -> list[tuple[str, str]]:
    """The name of each (x, y, name) and on which side of the point; '' where it would cover a point or a name.

    The first points are the first to get their names.
    """
    places = list(
        zip(_shares([x for x, _, _ in points], log_x), _shares([y for _, y, _ in points], log_y), strict=True)
    )
    dots = [(x - _GAP, x + _GAP, y - _LINE / 4, y + _LINE / 4) for x, y in places]
    taken: list[Box] = []
    shown = []
    for number, (at, (_, _, name)) in enumerate(zip(places, points, strict=True)):
        others = taken + dots[:number] + dots[number + 1 :]
        boxes = {side: _box(at, name, side) for side in _SIDES}
        side = next((side for side, box in boxes.items() if _is_free(box, others)), None)
        shown.append(("", next(iter(_SIDES))) if side is None else (name, side))
        taken += [] if side is None else [boxes[side]]
    return shown


def _shares(values: Sequence[float], is_log: bool) -> list[float]:
    """Where they are between the least and the largest, 0 to 1."""
    placed = [math.log10(value) if is_log else value for value in values]
    low, high = min(placed), max(placed)
    return [(value - low) / (high - low) if high > low else 0.5 for value in placed]


def _box(at: tuple[float, float], name: str, side: str) -> Box:
    along, up = _SIDES[side]
    half = _LETTER * len(name) / 2
    x, y = at[0] + 2 * along * (half + _GAP), at[1] + up * _LINE
    return x - half, x + half, y - _LINE / 2, y + _LINE / 2


def _is_free(box: Box, others: Sequence[Box]) -> bool:
    left, right, bottom, top = box
    if left < -_EDGE or right > 1 + _EDGE:
        return False
    return not any(left < other[1] and other[0] < right and bottom < other[3] and other[2] < top for other in others)
