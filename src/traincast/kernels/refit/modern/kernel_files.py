"""Every file of kernels, by name, and its rows as blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from traincast.kernels.coefficients import Fitted
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern import cudnn_file, liger_file, product_files
from traincast.kernels.refit.modern.kernel_row import KernelRow, ask_anyway, askable, block_of
from traincast.kernels.refit.spread import group_shares
from traincast.trace.graph import Floats

KERNEL_FILES: dict[str, Callable[[Path], list[KernelRow]]] = {
    product_files.XLA: product_files.xla_rows,
    product_files.CEILINGS: product_files.ceiling_rows,
    product_files.MISC: product_files.misc_rows,
    cudnn_file.FILE: cudnn_file.cudnn_rows,
    liger_file.FILE: liger_file.liger_rows,
}


def kernel_rows(data: Path) -> dict[str, list[KernelRow]]:
    """By file."""
    return {file: read(data) for file, read in KERNEL_FILES.items()}


def kernel_blocks(data: Path, *, teach: bool = False) -> list[Block]:
    """One block a file, of the rows that can be asked; `teach` adds those of known work and device that cannot, yet.

    Rows without seconds (memory alone) are never in a block.
    """
    blocks = []
    for file, rows in kernel_rows(data).items():
        timed = [row for row in rows if np.isfinite(row.seconds)]
        chosen = ask_anyway(timed) if teach else askable(timed)
        if chosen:
            blocks.append(block_of(file.removesuffix(".csv.gz"), chosen))
    return blocks


def lone_log_sd(block: Block, fitted: Fitted) -> Floats:
    """What the spread of lone kernels says of rows that run a few, by their shares of the time."""
    spread: Floats = np.sqrt((group_shares(block, fitted.coefficients) ** 2) @ fitted.kernel_log_sd**2)
    return spread
