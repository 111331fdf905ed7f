"""Numbers out of the bytes of a plain CSV table, many at a time.

A cell is a run of digits, or two with a dot between them. Eight digits are one machine word: reading the word that ends
where the run ends and combining its bytes pairwise (units and tens, then hundreds, ...) costs a few array operations
for all cells of a column, many times less than parsing one cell after the other. What is not so plain ('nan',
more than 24 digits) is left to `float`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traincast.logs.log import FloatArray

_BEFORE = b"0" * 24 + b"\n"  # the first cell also has an end before it, and room for the words that end in it
_NEWLINE, _DOT, _PLUS, _MINUS, _E, _QUOTE = 10, 46, 43, 45, 101, b'"'
_MOST_DIGITS = 24
_POWER = 10.0 ** np.arange(100 + _MOST_DIGITS)  # exact up to 10**22
_ZEROS = np.uint64(0x3030303030303030)  # eight times the character 0
# The last bytes of a word: little endian, so that the last character is the highest byte.
_LAST_BYTES = np.array([0] + [((1 << 8 * n) - 1) << 8 * (8 - n) for n in range(1, 9)], np.uint64)

Positions = NDArray[np.int64]


def numbers_of(data: bytes, *, separator: bytes, n_columns: int, wanted: list[int]) -> list[FloatArray] | None:
    """The wanted columns of whole lines; NaN is an empty cell, infinity a number that is not finite.

    None where the lines are not plain: quoted cells, a wanted cell that is no number, or not `n_columns` cells in every
    line.
    """
    if _QUOTE in data:
        return None
    data = _BEFORE + data.translate(None, b" \r")
    text = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero((text == separator[0]) | (text == _NEWLINE) | (text == _DOT))
    kinds = text[marks]
    ends = np.flatnonzero(kinds != _DOT)  # of the cells, as positions in `marks`; the first is that of `_BEFORE`
    if (len(ends) - 1) % n_columns:
        return None
    is_newline = (kinds[ends[1:]] == _NEWLINE).reshape(-1, n_columns)
    if not is_newline[:, -1].all() or np.count_nonzero(is_newline) != len(is_newline):
        return None
    columns = []
    for column in wanted:
        values = _column(data, marks, before=ends[:-1][column::n_columns], last=ends[1:][column::n_columns])
        if values is None:
            return None
        columns.append(values)
    return columns


def _column(data: bytes, marks: Positions, *, before: Positions, last: Positions) -> FloatArray | None:
    """Numbers of the cells between the marks `before` and `last`; None if one is no number."""
    text = np.frombuffer(data, np.uint8)
    start, cell_end = marks[before] + 1, marks[last]
    end, exponent = _without_exponent(text, start, cell_end) if b"e" in data or b"E" in data else (cell_end, None)
    is_negative = text[start] == _MINUS if b"-" in data else np.False_
    n_dots = last - before - 1
    has_dot = n_dots > 0
    dot = np.where(has_dot, marks[last - 1], end)
    n_whole = dot - start - is_negative
    values, is_plain = _digits(text, dot, n_whole)
    n_decimals = end - dot - has_dot
    if n_decimals.any():
        decimals, is_plain_too = _digits(text, end, n_decimals)
        # One product or quotient of whole numbers: as long as these are exact, it is what `float` gives.
        power = n_decimals.clip(max=_MOST_DIGITS)
        values = values * _POWER[power] + decimals
        values = values / _POWER[power] if exponent is None else _shifted(values, exponent - power)
        is_plain &= is_plain_too
    elif exponent is not None:
        values = _shifted(values, exponent)
    if is_negative.any():
        values = np.where(is_negative, -values, values)
    is_plain &= (n_dots < 2) & (n_whole + n_decimals > 0)
    return values if is_plain.all() else _with_odd_cells(values, np.flatnonzero(~is_plain), data, start, cell_end)


def _with_odd_cells(
    values: FloatArray, odd: Positions, data: bytes, start: Positions, end: Positions
) -> FloatArray | None:
    """Empty cells are NaN, others are read by `float`; None if one of these is no number."""
    values[odd] = np.nan
    odd = odd[end[odd] > start[odd]]
    cells = zip(start[odd].tolist(), end[odd].tolist(), strict=True)
    values[odd] = [number_in(data[first:after]) for first, after in cells]
    return None if np.isnan(values[odd]).any() else values


def _without_exponent(text: NDArray[np.uint8], start: Positions, end: Positions) -> tuple[Positions, Positions]:
    """Where cells end without an exponent of two digits, 'e-05', and the exponent."""
    sign = text[end - 3]
    has_exponent = (end - start > 4) & ((text[end - 4] | 32) == _E) & ((sign == _PLUS) | (sign == _MINUS))
    exponent, is_plain = _digits(text, end, 2 * has_exponent)
    has_exponent &= is_plain
    return end - 4 * has_exponent, np.where(sign == _MINUS, -1, 1) * exponent.astype(np.int64) * has_exponent


def _shifted(values: FloatArray, exponent: Positions) -> FloatArray:
    return np.where(exponent < 0, values / _POWER[-exponent.clip(max=0)], values * _POWER[exponent.clip(min=0)])


def _digits(text: NDArray[np.uint8], end: Positions, count: Positions) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The whole numbers of `count` digits before each `end`, and whether they were digits."""
    words = np.ndarray((text.size - 7,), "<u8", text, strides=(1,))  # one at each byte
    is_plain = count <= _MOST_DIGITS
    total = np.zeros(len(end))
    most = int(count.max(initial=0))
    for n_before in range(0, min(most, _MOST_DIGITS), 8):
        n_here = np.minimum(count, 8) if n_before == 0 else np.clip(count - n_before, 0, 8)
        word = words[end - 8 - n_before] ^ _ZEROS
        word &= _LAST_BYTES[n_here]
        is_plain &= ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080) == 0
        total += _combined(word) * _POWER[n_before]
    return total, is_plain


def _combined(digits: NDArray[np.uint64]) -> FloatArray:
    """Eight digits, one in each byte, as a number."""
    pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return ((fours * np.uint64(10_000) + (fours >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.float64)


def number_in(cell: bytes | str) -> float:
    """A cell that `float` must read: NaN if it is empty or no number, infinity for 'nan' and 'inf'."""
    try:
        value = float(cell)
    except ValueError:
        return np.nan
    return value if -np.inf < value < np.inf else np.inf
