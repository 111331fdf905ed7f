"""Whether a value is what it is used as: jobs and rules may come from anybody's program, and be of any type."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any, TypeGuard, TypeVar

from traincast.errors import InputError

One = TypeVar("One")


def is_number(value: object) -> TypeGuard[float]:
    """A finite one."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def told(value: Any) -> str:
    """As a sentence has it: numbers short, all else as it is written in a program."""
    is_short = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return f"{float(value):g}" if is_short else repr(value)


def jobs_in(given: object, kind: type[One]) -> list[One]:
    """The jobs of a list; raises for what is none."""
    listed = list(given) if isinstance(given, Iterable) else None
    found = [job for job in listed or () if isinstance(job, kind)]
    if listed is None or len(found) < len(listed):
        raise InputError(
            f"Jobs should be a list of {kind.__name__} objects or the path of a CSV file, not {given!r:.80}."
        )
    return found
