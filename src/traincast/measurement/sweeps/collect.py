"""Rows of a sweep as they come, and which of them is enough. Ctrl-C ends the sweep and keeps them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Row = TypeVar("Row")
WITHIN_FRACTION = 0.05  # of the best: what is worth no more memory, and no more workers


@dataclass(frozen=True, slots=True)
class Collected(Generic[Row]):
    """What was measured, and whether Ctrl-C ended it early."""

    rows: tuple[Row, ...]
    was_stopped: bool


@dataclass(slots=True)
class _Interrupt:
    was_asked: bool = field(default=False)


def collect(rows: Iterable[Row], on_row: Callable[[Row], None] | None = None) -> Collected[Row]:
    """All rows, each told to `on_row` as soon as it is there.

    A measurement that is stopped by Ctrl-C may still give what it has: the sweep then ends after that row. Before the
    first row there is nothing to keep, and KeyboardInterrupt goes on as usual.
    """
    found: list[Row] = []
    with _watched() as interrupt:
        try:
            for row in rows:
                found.append(row)
                if on_row is not None:
                    on_row(row)
                if interrupt.was_asked:
                    break
        except KeyboardInterrupt:
            interrupt.was_asked = True
            if not found:
                raise
    return Collected(tuple(found), interrupt.was_asked)


def first_within(rows: Sequence[Row], speed: Callable[[Row], float]) -> Row:
    """The first, of ascending expense, that is nearly as fast as the fastest."""
    enough = (1 - WITHIN_FRACTION) * max(speed(row) for row in rows)
    return next(row for row in rows if speed(row) >= enough)


@contextmanager
def _watched() -> Iterator[_Interrupt]:
    """Remembers that Ctrl-C was pressed, whoever catches the KeyboardInterrupt that it still raises."""
    interrupt = _Interrupt()
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield interrupt
        return

    def remember(number: int, frame: object) -> None:
        interrupt.was_asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
