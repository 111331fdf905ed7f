"""What this machine has: memory, caches, and the rates of large products and of copies that no cache holds."""

from __future__ import annotations

import mmap
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_MEMORY = Path("/proc/meminfo")
_COPIED_BYTES = 256 * 2**20
_TOUCHED_BYTES = 64 * 2**20
_WIDTH = 1024
_REPEATS = 5
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`caches` are the bytes of each level of the first core's caches for data."""

    memory_bytes: int
    memory_bytes_per_s: float
    flop_per_s: float  # of large products in fp32
    fresh_byte_s: float  # what a byte costs that the process must ask the system for
    caches: dict[int, int]

    @property
    def cache_bytes(self) -> int | None:
        """Of the last level."""
        return self.caches[max(self.caches)] if self.caches else None


def read_machine() -> Machine:
    """Of this machine, now. The rate counts bytes read and bytes written."""
    return Machine(
        memory_bytes=read_memory_bytes(),
        memory_bytes_per_s=_copy_bytes_per_s(),
        flop_per_s=_products_flop_per_s(),
        fresh_byte_s=_fresh_byte_s(),
        caches=read_caches(_CACHES),
    )


def read_caches(folder: Path) -> dict[int, int]:
    """By level, from Linux' description of a core; empty where there is none."""
    found = {}
    for cache in sorted(folder.glob("index*")):
        try:
            level, kind = int((cache / "level").read_text()), (cache / "type").read_text().strip()
            size = re.fullmatch(r"(\d+)([KMG]?)", (cache / "size").read_text().strip())
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and size is not None:
            found[level] = int(size[1]) * _UNITS[size[2]]
    return found


def read_memory_bytes() -> int:
    """All that this machine has."""
    try:
        total = re.search(r"MemTotal:\s+(\d+) kB", _MEMORY.read_text())
    except OSError:
        total = None
    if total is not None:
        return int(total[1]) * 2**10
    import os

    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _copy_bytes_per_s() -> float:
    import torch

    source = torch.ones(_COPIED_BYTES // 4)
    target = torch.zeros_like(source)  # written once, so that its pages are there
    return 2 * _COPIED_BYTES / _quickest_s(lambda: target.copy_(source))


def _products_flop_per_s() -> float:
    import torch

    matrix = torch.rand(_WIDTH, _WIDTH)
    return 2.0 * _WIDTH**3 / _quickest_s(lambda: torch.mm(matrix, matrix))


def _fresh_byte_s() -> float:
    """One write to every page of a new mapping."""
    with mmap.mmap(-1, _TOUCHED_BYTES) as pages:
        start_s = time.perf_counter()
        for at in range(0, _TOUCHED_BYTES, mmap.PAGESIZE):
            pages[at] = 1
        fresh_s = time.perf_counter() - start_s
        start_s = time.perf_counter()
        for at in range(0, _TOUCHED_BYTES, mmap.PAGESIZE):
            pages[at] = 2
        again_s = time.perf_counter() - start_s
    return max(fresh_s - again_s, 0.0) / _TOUCHED_BYTES


def _quickest_s(work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(_REPEATS):
        start_s = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start_s)
    return min(seconds)
