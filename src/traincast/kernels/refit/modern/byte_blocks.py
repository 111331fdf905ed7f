"""Kernels of language models that move bytes, as blocks: what eager PyTorch runs, and what tuned libraries do.

Both files clear the cache before each timed call. Rows that show the host or the clock's ticks, not the device, are
left out: those whose bytes take less time than it takes to launch their kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern import cudnn_file, liger_file
from traincast.kernels.refit.modern.kernel_row import KernelRow, ask_anyway, block_of

EAGER, TUNED = "language kernels, eager", "language kernels, tuned"
_EAGER_LAUNCH_S = 8e-6  # of one op of a framework that times with events
_TUNED_LAUNCH_S = {"forward": 15e-6, "backward": 100e-6, "full": 100e-6}  # functions in Python around one kernel
_PROFILED_S = 5e-6  # kernels' own times, printed in whole microseconds
_FAMILIES = {
    "cross_entropy": "loss",
    "megatron_cross_entropy": "loss",
    "tvd": "loss",
    "fused_add_rms_norm": "norm of ops",
    "rms_norm": "norm of ops",
    "rope": "rotary",
    "llama4_rope": "rotary",
    "megatron_swiglu": "activation",
    "relu_squared": "activation",
    "embedding": "embedding",
}
_FUSED_NORM = "fused norm"


def byte_blocks(data: Path) -> list[Block]:
    """Eager kernels, then tuned ones. Tags: `family`, a row's kind; `least_s`, its bytes over the bandwidth."""
    rows = [row for row in cudnn_file.cudnn_rows(data) + liger_file.liger_rows(data) if np.isfinite(row.seconds)]
    chosen = [row for row in ask_anyway(rows) if not any(call.flop for call in row.calls)]
    shown = [row for row in chosen if _least_s(row) >= _launch_s(row)]
    parts = {EAGER: [row for row in shown if not _is_tuned(row)], TUNED: [row for row in shown if _is_tuned(row)]}
    return [_block(name, part) for name, part in parts.items() if part]


def _block(name: str, rows: Sequence[KernelRow]) -> Block:
    block = block_of(name, rows, is_cold=True)
    family = np.array([_family(row) for row in rows])
    return replace(block, tags=block.tags | {"family": family, "least_s": np.array([_least_s(row) for row in rows])})


def _family(row: KernelRow) -> str:
    is_fused = row.file == cudnn_file.FILE or row.kernel in ("layer_norm", "megatron_rms_norm") or _is_tuned(row)
    return _FUSED_NORM if is_fused and row.kernel.endswith("norm") else _FAMILIES[row.kernel]


def _is_tuned(row: KernelRow) -> bool:
    return any(call.work.name.startswith(("TUNED", "COMPILED")) for call in row.calls)


def _least_s(row: KernelRow) -> float:
    device = find_device(row.device_name or "")
    return sum(call.bytes for call in row.calls) / device.memory_bytes_per_s


def _launch_s(row: KernelRow) -> float:
    if row.file == cudnn_file.FILE:
        return _PROFILED_S
    return _TUNED_LAUNCH_S[row.direction] if _is_tuned(row) else _EAGER_LAUNCH_S * len(row.calls)
