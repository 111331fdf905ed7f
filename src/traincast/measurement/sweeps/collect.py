"""Rows of a sweep as they come; Ctrl-C ends the sweep and keeps them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Row = TypeVar("Row")


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
