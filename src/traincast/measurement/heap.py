"""Memory that a step frees stays with the process, so that the next step need not ask the system for it again.

By its defaults glibc gives freed memory back at the end of nearly every step, and how much depends on which tensors
the process ever freed: the same step was 1.0 to 2.5 times as long, for page faults alone (docs/calibrate.md). Other
allocators (jemalloc, tcmalloc) keep it, as does PyTorch's own on GPUs.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

# From malloc.h: see mallopt(3).
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_NEVER = 2**31 - 1
_PAD_BYTES = 64 * 2**20
_OWN_CHOICE = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "LD_PRELOAD")


@cache
def keep_memory() -> bool:
    """For the rest of this process; False where the C library has no such setting, or the user has made a choice."""
    if any(name in os.environ for name in _OWN_CHOICE):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _NEVER) and mallopt(_M_TOP_PAD, _PAD_BYTES))
