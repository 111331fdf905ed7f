"""A bar on stderr for what takes longer than a moment; nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def tracked(items: Sequence[_Item], told: str) -> Iterator[_Item]:
    """The items, one after the other, with a bar where stderr is a terminal and a line where it is not."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{told} ({len(items)})\n")
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=told, console=Console(stderr=True), transient=True)
