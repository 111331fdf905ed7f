"""Steps and epochs as people read them: '1 step', '1,200 steps', '12.5 epochs', 'never'."""

from __future__ import annotations

import math

_MOST_DIGITS = 1e15  # from here on a number is told by its power of ten


def count(number: float, unit: str) -> str:
    """A number of whole steps, or of epochs, which may have a fraction: 1,200 or 12.5."""
    if not math.isfinite(number):
        return "never"
    if abs(number) >= _MOST_DIGITS:
        return f"{number:.3g}"
    return f"{number:,.2f}".rstrip("0").rstrip(".") if unit == "epoch" else f"{number:,.0f}"


def of_all(n: int, n_all: int, things: str, one: str, many: str) -> str:
    """'1 of 40 points is', '2 of 40 points are': the verb for one and for many."""
    return f"{n:,} of {n_all:,} {things} {one if n == 1 else many}"


def how_often(n: int) -> str:
    """'once', '3 times'."""
    return "once" if n == 1 else f"{n:,} times"


def counted(number: float, unit: str) -> str:
    """With the unit: '1 step', '1,200 steps'."""
    shown = count(number, unit)
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"
