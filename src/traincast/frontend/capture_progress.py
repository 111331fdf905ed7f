"""How far a capture is, for whoever shows it. Needs no torch, so that a command can set it before there is a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[int, int], None]  # steps recorded so far, and in all

_SHOWN_TO: ContextVar[Progress | None] = ContextVar("_SHOWN_TO", default=None)


@contextmanager
def shown_to(progress: Progress) -> Iterator[None]:
    """Captures in this block report to this function."""
    token = _SHOWN_TO.set(progress)
    try:
        yield
    finally:
        _SHOWN_TO.reset(token)


def report(n_done: int, n_steps: int) -> None:
    """From within a capture."""
    progress = _SHOWN_TO.get()
    if progress is not None:
        progress(n_done, n_steps)
