"""The one gate through which numbers from files come: what of them is believed.

A number has a sane length and fits the type in which trainings count (fp32): what is larger has overflowed, and counts
as a number that is not finite. Steps, epochs and lengths of runs are 0 or more, and no run has a quadrillion of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from traincast.logs.argument_checks import MOST

Floats = NDArray[np.float64]

MOST_VALUE = float(np.finfo(np.float32).max)
LEAST_VALUE = float(np.finfo(np.float32).smallest_subnormal)  # what is nearer to 0 is 0, as in fp32
_LONGEST = 400  # characters of a number that are read: what is longer is cut, which changes no number we keep
_MOST_TIME = 1e19  # nanoseconds since 1970, until 2286


def number(value: float | bytes | str) -> float:
    """As it is written, or as a format holds it: NaN where it is no number, infinity for one that is not finite."""
    try:
        found = float(value[:_LONGEST] if isinstance(value, bytes | str) else value)
    except OverflowError:  # of a whole number with more than 308 digits
        return math.inf
    except ValueError:
        return math.nan
    if not -MOST_VALUE <= found <= MOST_VALUE:
        return math.inf
    return found if abs(found) >= LEAST_VALUE else 0.0


def amount(value: object) -> float | None:
    """Of something that is counted, as the steps of a run are: above 0, and as many as there can be; else None."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    found = number(value)
    return found if 0 < found <= MOST else None


def whole(value: object) -> int | None:
    """The same of what is counted in whole ones."""
    found = amount(value)
    return None if found is None else int(found) or None


def numbers(values: Floats) -> Floats:
    """Many at once, of which NaN are none, and infinity may stand for what is not finite already."""
    sizes = np.abs(values)
    is_over, is_under = sizes > MOST_VALUE, sizes < LEAST_VALUE
    if is_under.any():
        values = np.where(is_under, 0.0, values)
    return np.where(is_over, math.inf, values) if is_over.any() else values


def is_place(values: Floats) -> NDArray[np.bool_]:
    """Which of them can be steps or epochs."""
    return (values >= 0) & (values <= MOST)


def is_time(values: Floats) -> NDArray[np.bool_]:
    """Which of them can be seconds of a clock, or smaller units since 1970."""
    return (values >= 0) & (values <= _MOST_TIME)
