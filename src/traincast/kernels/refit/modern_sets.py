"""Measurements of 2021 to 2026 that teach the coefficients: products, attention, norms, steps of language models.

Lone kernels are timed in short bursts with rests between them, in which no board meets its power limit; steps of
language models run for minutes at it. Each names what its machine adds to a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern.byte_blocks import byte_blocks
from traincast.kernels.refit.modern.kernel_files import kernel_rows
from traincast.kernels.refit.modern.kernel_row import KernelRow, ask_anyway, block_of
from traincast.kernels.refit.modern.language_blocks import is_teaching, language_block
from traincast.kernels.refit.modern.language_files import language_rows

_BURST_S = 1.0  # rest around a lone kernel: any that is long against it leaves the power limit out
_FEW = 8  # smallest rows of a table, whose median shows its floor
_KERNEL_S = 3e-6  # of which the smallest kernel itself takes about this
_LARGE_FLOP = 2.0**33  # of products that are more than their launch


def modern_blocks(data: Path, traces: Path) -> Iterator[Block]:
    """One block a kind of measurement and, for products, a machine."""
    files = {name.partition(".")[0]: ask_anyway(rows) for name, rows in kernel_rows(data).items()}
    products = [row for row in files["gemm_xla"] if row.precision in ("bf16", "fp8")]
    for device in sorted({str(row.device_name) for row in products}):
        yield xla_block([row for row in products if row.device_name == device])
    yield burst(block_of("product ceilings", files["gemm_ceilings_stas"]))
    attention = [row for row in files["kernels_cudnn"] if is_usual_attention(row)]
    yield replace(burst(masked(block_of("attention", attention))), attention="tuned")
    yield from byte_blocks(data)
    rows = [row for file in language_rows(data).values() for row in file if is_teaching(row)]
    for source in sorted({row.source for row in rows} & set(LANGUAGE_SOURCES)):
        block = language_block(f"language models {source}", [row for row in rows if row.source == source], traces)
        if block is not None:
            yield block


# Runs of vtrain are launch-bound and leave out their precision, those of qwen1-finetune wait for their host, and those
# on B200 run parts of a step: they are scored and not learned from.
LANGUAGE_SOURCES = ("llm-foundry", "internevo")


def xla_block(rows: list[KernelRow]) -> Block:
    """Products of one machine that are more than a launch; its smallest rows give what a call adds."""
    block = block_of(f"products {rows[0].device_name}", rows)
    floor_s = float(np.median(np.sort(block.observed_s)[:_FEW])) - _KERNEL_S
    block = replace(burst(block), floor_s=np.full(block.n_rows, floor_s), floor_power=1.0)
    return block.take(block.kernels.sizes["flop"] >= _LARGE_FLOP)


def masked(block: Block) -> Block:
    """With the flop of the pairs that a mask leaves, as the engine counts attention."""
    kept = np.asarray(block.tags["kept_fraction"])[block.row]
    sizes = block.kernels.sizes | {"flop": block.kernels.sizes["flop"] * kept}
    return replace(block, kernels=replace(block.kernels, sizes=sizes))


def burst(block: Block) -> Block:
    """As lone kernels are timed: with rests."""
    return replace(block, idle_s=_BURST_S)


def is_usual_attention(row: KernelRow) -> bool:
    """Deterministic backward passes and blockwise scaling are slower by choice; some kernels ignore a window."""
    is_usual = row.kernel == "attention" and row.precision in ("bf16", "fp8")
    return is_usual and row.tags["is_deterministic"] == "0" and not row.tags["doubt"]
