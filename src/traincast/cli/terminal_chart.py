"""A small chart out of characters: dots of braille for lines, shade for a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Bits of a braille character, by row and column of its eight dots.
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BRAILLE = 0x2800
_SHADE, _RULE = "░", "─"
_FEW = 0.1
_WHOLE = 100.0  # an axis that ends below it may have fractions: epochs


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """A forecast: its middle and where most of it lies, by step."""

    x: Floats
    low: Floats
    middle: Floats
    high: Floats


def chart_lines(
    x: Floats, y: Floats, band: Band | None = None, *, target: float | None = None, width: int = 72, height: int = 12
) -> list[str]:
    """Points and a band, with the range of both axes beside them. At least one point is finite.

    The few highest points are left out where they would press all others together, as the first ones of a run do.
    """
    is_finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[is_finite], y[is_finite]
    across = _range(x if band is None else np.r_[x, band.x])
    seen = [
        _close(y),
        *([] if band is None else [band.low, band.high]),
        *([] if target is None else [np.array([target])]),
    ]
    upright = _range(np.concatenate(seen))
    is_inside = (y >= upright[0]) & (y <= upright[1])
    x, y = x[is_inside], y[is_inside]
    labels = [f"{value:.4g}" for value in (upright[1], upright[0])]
    margin = max(map(len, labels))
    n_columns = max(width - margin - 2, 8)
    cells = np.full((height, n_columns), " ", dtype="<U1")
    if band is not None:
        _shade(cells, band, across, upright)
    if target is not None:
        row = cells[_place(np.array([target]), upright[::-1], height)[0]]
        row[row == " "] = _RULE
    dots = np.zeros((height, n_columns), int)
    _dot(dots, x, y, across, upright)
    if band is not None:
        _dot(dots, band.x, band.middle, across, upright)
    rows = []
    for number, (row, bits) in enumerate(zip(cells, dots, strict=True)):
        text = "".join(chr(_BRAILLE + bit) if bit else cell for cell, bit in zip(row, bits, strict=True))
        label = labels[0] if number == 0 else labels[1] if number == height - 1 else ""
        rows.append(f"{label:>{margin}} |{text}".rstrip())
    first, last = (f"{end:,.0f}" if across[1] >= _WHOLE else f"{end:.3g}" for end in across)
    return [*rows, f"{'':>{margin}}  {first}{last:>{max(n_columns - len(first), 1)}}"]


def _range(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _close(y: Floats) -> Floats:
    """Without points that are far from nearly all others."""
    low, high = np.quantile(y, [_FEW, 1 - _FEW])
    is_close = (y >= low - 0.5 * (high - low)) & (y <= high + 0.5 * (high - low))
    return y[is_close] if is_close.any() else y


def _place(values: Floats, ends: tuple[float, float], n_places: int) -> NDArray[np.int64]:
    """Which of the places from one end to the other each value is in."""
    share = (values - ends[0]) / (ends[1] - ends[0])
    return np.clip((share * n_places).astype(int), 0, n_places - 1)


def _dot(
    dots: NDArray[np.int64], x: Floats, y: Floats, across: tuple[float, float], upright: tuple[float, float]
) -> None:
    height, width = dots.shape
    rows, columns = _place(y, upright[::-1], 4 * height), _place(x, across, 2 * width)
    np.bitwise_or.at(dots, (rows // 4, columns // 2), _BITS[rows % 4, columns % 2])


def _shade(cells: NDArray[np.str_], band: Band, across: tuple[float, float], upright: tuple[float, float]) -> None:
    height, width = cells.shape
    middles = across[0] + (np.arange(width) + 0.5) / width * (across[1] - across[0])
    tops = _place(np.interp(middles, band.x, band.high), upright[::-1], height)
    bottoms = _place(np.interp(middles, band.x, band.low), upright[::-1], height)
    for column in np.flatnonzero((middles >= band.x[0]) & (middles <= band.x[-1])):
        cells[tops[column] : bottoms[column] + 1, column] = _SHADE
