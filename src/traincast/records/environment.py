"""Where and with what something was measured: without it, a number of seconds means nothing a month later."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import traincast

_CPU_INFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The device by name and kind ('cpu', 'cuda'), the host, threads, versions of software, and clocks.

    None is what could not be read. `versions` has python, torch, traincast, and cuda and cudnn where there are;
    `clocks` has cpu_mhz (the mean of the cores at that moment), sm_mhz and the CPU's governor. `load_average` counts
    the processes that wanted a core during the minute before.
    """

    device: str
    device_kind: str
    host: str
    n_threads: int
    n_cores: int
    versions: Mapping[str, str]
    clocks: Mapping[str, float | str | None]
    load_average: float | None = None
    omp_num_threads: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Environment:
        return cls(**data)


def read_environment(device: str = "cpu") -> Environment:
    """Of this process, now."""
    import torch

    kind = device.partition(":")[0]
    text = _read(_CPU_INFO)
    clocks: dict[str, float | str | None] = {"cpu_mhz": cpu_mhz(text), "governor": _read(_GOVERNOR) or None}
    versions = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "traincast": traincast.__version__,
    }
    if kind == "cuda":
        clocks["sm_mhz"] = sm_mhz(torch.cuda, device)
        versions |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    return Environment(
        device=str(torch.cuda.get_device_name(device)) if kind == "cuda" else cpu_name(text),
        device_kind=kind,
        host=socket.gethostname(),
        n_threads=torch.get_num_threads(),
        n_cores=n_usable_cores(),
        versions=versions,
        clocks=clocks,
        load_average=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        omp_num_threads=os.environ.get("OMP_NUM_THREADS"),
    )


def n_usable_cores() -> int:
    """Those that this process may run on, which in a container can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_gpus() -> int:
    """Those that torch sees."""
    import torch

    return int(torch.cuda.device_count())


def gpu_name() -> str:
    """Of the first one, as its driver calls it."""
    import torch

    return str(torch.cuda.get_device_name())


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """torch has so many for a while."""
    import torch

    n_before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


def cpu_name(cpu_info: str) -> str:
    """As /proc/cpuinfo calls it; where that is silent, as Python knows it."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpu_info, re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.processor() or platform.machine() or "unknown CPU"


def cpu_mhz(cpu_info: str) -> float | None:
    """The mean clock of all cores in /proc/cpuinfo."""
    found = [float(text) for text in re.findall(r"^cpu MHz\s*:\s*([0-9.]+)$", cpu_info, re.MULTILINE)]
    return round(sum(found) / len(found), 1) if found else None


def sm_mhz(cuda: Any, device: str) -> float | None:
    """Needs NVIDIA's management library, which is often not installed beside torch, and not for every GPU."""
    try:
        from pynvml import NVMLError
    except ImportError:
        return None
    try:
        return float(cuda.clock_rate(device))
    except (NVMLError, RuntimeError, OSError):  # a part of a GPU (MIG, vGPU) and WSL have no clock to tell
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
