"""How far a long command is: a bar on stderr where somebody looks, a line each tenth where nobody does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def counted(told: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function to call with (done, of how many)."""
    if not sys.stderr.isatty():
        yield _lines(told)
        return
    from traincast.cli.progress import ProgressBar

    with ProgressBar(told) as bar:
        yield bar


def _lines(told: str) -> Callable[[int, int], None]:
    last = -1

    def tell(done: int, total: int) -> None:
        nonlocal last
        tenth = 10 * done // max(total, 1)
        if tenth > last:
            last = tenth
            sys.stderr.write(f"{told}: {done:,} of {total:,}\n")
            sys.stderr.flush()

    return tell
