"""Ctrl-C between steps: in the middle of an update the weights would be half old, half new."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupt:
    """Whether somebody has pressed Ctrl-C."""

    def __init__(self) -> None:
        self.is_asked = False


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """The first Ctrl-C is only noted, for the loop to end in good order; a second one acts at once.

    Signals reach the main thread alone: in others nothing is changed, nor where Ctrl-C is to be ignored.
    """
    interrupt = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.is_asked = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
