"""How much memory there is, how much this process took at most, and a limit above which it is refused more.

A CPU box does not say "out of memory": it swaps, or the kernel kills some process, perhaps not the one that asked. So
a process that tries how far it gets sets itself a limit first. Outside Linux there is none, and the kernel decides.
"""

from __future__ import annotations

import sys
from pathlib import Path

from traincast.units import KIB

_RESERVE_FRACTION = 0.05  # left to everything else that runs here
_CGROUP_LIMIT, _CGROUP_USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def available_bytes() -> int | None:
    """What a new process can take without swapping, also inside a container; None where nobody says."""
    found = [bytes_ for bytes_ in (_kernel_line(Path("/proc/meminfo"), "MemAvailable"), _cgroup_bytes()) if bytes_]
    return min(found) if found else None


def peak_bytes() -> int | None:
    """The most that this process has had in memory since it began; None where nobody says.

    Not `ru_maxrss`: a child begins with that of the process that started it.
    """
    return _kernel_line(Path("/proc/self/status"), "VmHWM")


def limit_memory(bytes_: int) -> None:
    """This process is refused memory beyond so much (Linux), instead of making the machine swap."""
    if sys.platform != "linux":
        return
    import resource

    most = int(bytes_ * (1 - _RESERVE_FRACTION))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # DATA counts what is really private and writable; AS would count the gigabytes of libraries that torch maps.
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def _kernel_line(path: Path, name: str) -> int | None:
    """'VmHWM:   123 kB' in bytes."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # not Linux
        return None
    values = [line.split() for line in lines if line.startswith(f"{name}:")]
    return int(values[0][1]) * KIB if values and len(values[0]) == 3 else None


def _cgroup_bytes() -> int | None:
    try:
        limit, used = _CGROUP_LIMIT.read_text().strip(), _CGROUP_USED.read_text().strip()
    except OSError:  # no container, or one of another kind
        return None
    return max(int(limit) - int(used), 1) if limit.isdigit() and used.isdigit() else None
