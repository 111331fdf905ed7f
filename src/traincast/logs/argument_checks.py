"""What a caller gives, as what it should be, where no signature declares that. Else a sentence says so."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError, quoted

Floats = NDArray[np.float64]
MOST = 1e15  # steps, epochs, layers, parameters
_MOST_VALUES = 100_000_000  # of a list: 0.8 GB


def number(what: str, value: object) -> float:
    """Any real number, also one that is not finite, or the only value of a tensor."""
    is_one = hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0
    if isinstance(value, bool) or not is_one:
        raise _wrong(what, "a number", value)
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise InputError(f"{what} is too large: it has more than 308 digits.") from None
    except (TypeError, ValueError):
        raise _wrong(what, "a number", value) from None


def above_0(what: str, value: object, *, most: float = MOST) -> float:
    """A number above 0 that can be meant: no run has a quadrillion steps."""
    found = number(what, value)
    if not 0 < found < math.inf:
        raise InputError(f"{what} should be above 0, not {found:g}.")
    if found > most:
        raise InputError(f"{what} should be at most {most:g}, not {found:g}.")
    return found


def word(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(what, "a word", value)
    return value


def path(what: str, value: str | os.PathLike[str]) -> Path:
    """Of a file that may or may not be there."""
    found = Path(value)
    if not os.fspath(value):
        raise InputError(f"{what} should be the path of a file, and it is empty.")
    try:
        found.stat()
    except FileNotFoundError:
        return found
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be entered
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{what} {quoted(value)} cannot be read: {why}.") from None
    return found


def floats(what: str, values: object) -> Floats:
    """One row of numbers, of which some may not be finite. Tensors may have a gradient, or a type NumPy lacks."""
    _check_length(what, values)
    try:
        found = np.asarray(values, float)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        found = _one_by_one(what, values)
    if found.ndim == 0:
        raise _wrong(what, "a list of numbers", values)
    return found.ravel()


def _one_by_one(what: str, values: object) -> Floats:
    """Of what NumPy does not read at once: such tensors, lists of them, what comes one after the other."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise _wrong(what, "numbers", values)
    try:
        rows = np.ravel(values.tolist()) if hasattr(values, "tolist") else values
        found = np.fromiter(
            (one.item() if hasattr(one, "item") else one for one in islice(rows, _MOST_VALUES + 1)), float
        )
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise _wrong(what, "numbers", values) from None
    if len(found) > _MOST_VALUES:
        raise InputError(f"{what} should be at most {_MOST_VALUES:,} values, not {quoted(values)}.")
    return found


def _check_length(what: str, values: object) -> None:
    """Before memory is asked for them."""
    try:
        n_values = len(values) if hasattr(values, "__len__") else 0
    except OverflowError:  # a range of more than fits a machine word
        n_values = _MOST_VALUES + 1
    except TypeError:  # a tensor that is one number
        return
    if n_values > _MOST_VALUES:
        raise InputError(f"{what} should be at most {_MOST_VALUES:,} values, not {quoted(values)}.")


def _wrong(what: str, right: str, value: object) -> InputError:
    return InputError(f"{what} should be {right}, not {quoted(value)}.")
