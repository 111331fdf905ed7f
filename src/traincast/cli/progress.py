"""A bar on stderr for what takes longer than a moment; nothing where nobody looks."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

_PATIENCE_S = 2.0


class ProgressBar:
    """Called with what is done and what is to do (0: not known yet); shows itself after two seconds, on a terminal."""

    def __init__(self, told: str) -> None:
        self._told = told
        self._start_s = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, n_done: int, n_to_do: int) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None and time.monotonic() - self._start_s > _PATIENCE_S:
            self._open()
        if self._bar is not None:
            warming = "" if n_to_do else " (warming up)"
            self._bar.update(self._task, completed=n_done, total=n_to_do or None, description=f"{self._told}{warming}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the terminal to others; a later call shows it again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._told, total=None)
        self._bar.start()
