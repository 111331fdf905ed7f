"""What a kind of file is: a small valid one, how it is damaged, and who reads it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Damage = Callable[[bytes, random.Random], bytes]
Make = Callable[[], bytes]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`lines` are commands that read it, {file} being its path and {folder} where it lies, which is TRAINCAST_HOME too.

    Files that only a training reads, after minutes of work or a download, are given to their `reader` instead.
    """

    name: str
    file: str
    valid: Make
    damage: Damage
    lines: tuple[str, ...] = ()
    reader: Callable[[Path], object] | None = None
    beside: Mapping[str, Make] = field(default_factory=dict)
