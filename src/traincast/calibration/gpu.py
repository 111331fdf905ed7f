"""What a CUDA GPU sustains: products by precision, copies, and the least time of a kernel.

Never run on a GPU by its authors (docs/calibrate.md): kept thin, and tested with a made-up device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from traincast.measurement.stopwatch import CudaStopwatch

_SIZES = (2048, 4096, 8192)
_REPEATS = 10
_COPIED_BYTES = 512 * 2**20
_SMALL_KERNELS = 1000
_DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_SM_OF_TF32 = (8, 0)  # compute capability of the first GPUs with tf32 and bf16 units


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFigures:
    """As the driver tells them, and as measured. Rates that the GPU has no units for are 0."""

    name: str
    n_sm: int
    memory_bytes: int
    l2_bytes: int | None
    clock_hz: float | None
    flop_per_s: dict[str, float]
    memory_bytes_per_s: float
    launch_s: float


def measure_gpu(device: str, torch: Any) -> GpuFigures:
    """Takes some seconds. `torch` is the module, or what stands in for it where there is no GPU."""
    told = torch.cuda.get_device_properties(device)
    stopwatch = CudaStopwatch(torch.cuda, device)
    capability = (told.major, told.minor)
    rates = {}
    for precision, dtype in _DTYPES.items():
        has_units = precision == "fp32" or capability >= (_SM_OF_TF32 if precision != "fp16" else (7, 0))
        rates[precision] = _products_flop_per_s(torch, stopwatch, device, precision, dtype) if has_units else 0.0
    source = torch.empty(_COPIED_BYTES // 4, device=device)
    target = torch.empty_like(source)
    copy_s = quickest_s(stopwatch, lambda: target.copy_(source))
    one = torch.zeros(1, device=device)
    many_s = quickest_s(stopwatch, lambda: [one.add_(1.0) for _ in range(_SMALL_KERNELS)])
    clock_khz = getattr(told, "clock_rate", None)
    return GpuFigures(
        name=str(told.name),
        n_sm=int(told.multi_processor_count),
        memory_bytes=int(told.total_memory),
        l2_bytes=getattr(told, "L2_cache_size", None),
        clock_hz=None if clock_khz is None else 1e3 * clock_khz,
        flop_per_s=rates,
        memory_bytes_per_s=2 * _COPIED_BYTES / copy_s,
        launch_s=many_s / _SMALL_KERNELS,
    )


def _products_flop_per_s(torch: Any, stopwatch: CudaStopwatch, device: str, precision: str, dtype: str) -> float:
    """The best of several sizes."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        best = 0.0
        for size in _SIZES:
            left = torch.ones(size, size, device=device, dtype=getattr(torch, dtype))
            best = max(best, 2.0 * size**3 / quickest_s(stopwatch, partial(torch.mm, left, left)))
        return best
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def quickest_s(stopwatch: CudaStopwatch, work: Callable[[], Any]) -> float:
    """After one run that nobody times."""
    work()
    stopwatch.synchronize()
    for _ in range(_REPEATS):
        stopwatch.mark()
        work()
    stopwatch.mark()
    return min(stopwatch.read())
