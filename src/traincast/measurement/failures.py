"""What a real run can die of, told in one sentence."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from traincast.errors import MeasurementError, MemoryEndedError, TraincastError

# How torch's allocators say it where they have no exception of their own.
_NO_MEMORY = ("not enough memory", "can't allocate memory", "out of memory", "cublas_status_alloc_failed")
_LONGEST = 300


@contextlib.contextmanager
def users_code(
    where: str | Callable[[BaseException], str], *, partial: Callable[[], Any] | None = None
) -> Iterator[None]:
    """Around all that users wrote: modules, losses, examples, data sets. What comes out of it is one sentence.

    `where` says who failed, perhaps told by the error; `partial` gives what had been measured until then. Our own
    errors are such a sentence already.
    """
    try:
        yield
    except TraincastError:
        raise
    except Exception as error:  # not our code: anything may come out of it
        cause = error

        def told() -> MeasurementError:
            who = where if isinstance(where, str) else where(cause)
            return failure(who, cause, partial=None if partial is None else partial())

        raise _undisturbed(told) from error


def _undisturbed(make: Callable[[], MeasurementError]) -> MeasurementError:
    """Torch tells of a worker's death from a signal handler, wherever Python is just then: perhaps again, in here."""
    try:
        return make()
    except RuntimeError:
        return make()


def failure(where: str, error: BaseException, *, partial: Any = None) -> MeasurementError:
    """'Step 3 failed in the backward (ValueError: ...).', as the error of its kind."""
    if is_out_of_memory(error):
        return MemoryEndedError(f"{where} ran out of memory ({one_line(error)}).", partial=partial)
    kind, told = type(error).__name__, one_line(error)
    return MeasurementError(f"{where} failed ({kind}: {told.removeprefix(f'{kind}: ')}).", partial=partial)


def is_out_of_memory(error: BaseException) -> bool:
    """Of the device or of the machine: torch has a class for the one, and only words for the other."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _NO_MEMORY)


def one_line(error: BaseException) -> str:
    """The first line; of an error that a loader's worker passed on, the last, which is the error itself."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return "no message"
    line = lines[-1] if re.match(r"Caught \w+ in DataLoader worker", lines[0]) else lines[0]
    return line[:_LONGEST].rstrip(". ")
