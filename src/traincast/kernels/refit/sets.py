"""Every measured set that the coefficients are fitted to, and what each counts for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import LAYOUTS
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.model_rows import Step, lambda_steps, model_block, neusight_steps, timm_steps
from traincast.kernels.refit.modern.e2e_files import example_steps, image_rows
from traincast.kernels.refit.op_rows import op_blocks
from traincast.kernels.refit.processes import at_once

# Thousands of rows of one machine are not thousands of independent facts: a set counts for this many rows.
WEIGHTS = {
    "gemm": 800.0,
    "convolution": 800.0,
    "elementwise": 800.0,
    "softmax and layer norm": 800.0,
    "timm train nchw": 1500.0,
    "timm train nhwc": 1500.0,
    "timm inference nchw": 700.0,
    "timm inference nhwc": 700.0,
    "timm inference RTX-4090 nchw": 700.0,
    "timm inference RTX-4090 nhwc": 700.0,
    "transformers fp32": 600.0,
    "nvidia examples fp32": 400.0,
    "nvidia examples tf32": 400.0,
    "nvidia examples amp-fp16": 800.0,
    "products B200": 400.0,
    "products H100-SXM5-80GB": 400.0,
    "product ceilings": 300.0,
    "attention": 400.0,
    "language kernels, eager": 300.0,
    "language kernels, tuned": 150.0,
    "language models llm-foundry": 1200.0,
    "language models internevo": 100.0,
}
_ROWS_PER_OP = 600
_ELEMENTWISE_ROWS_PER_OP = 100


def model_steps(data: Path) -> Iterator[tuple[str, list[Step]]]:
    """Whole models by set: image models on two GPUs, transformers on seven, NVIDIA's examples on two dozen."""
    for mode in ("train", "inference"):
        steps = list(timm_steps(data, mode))
        for layout in LAYOUTS:
            yield f"timm {mode} {layout}", [step for step in steps if step.layout == layout]
    newer = image_rows(data)
    for layout in LAYOUTS:
        chosen = [row.step for row in newer if row.set_name == f"eager {layout}, PyTorch 2.4"]
        yield f"timm inference RTX-4090 {layout}", chosen
    yield "transformers fp32", list(neusight_steps(data))
    examples = [*lambda_steps(data), *example_steps(data)]
    for precision in ("fp32", "tf32", "amp-fp16"):
        yield f"nvidia examples {precision}", [step for step in examples if step.tags["precision"] == precision]


def model_blocks(data: Path, traces: Path, n_processes: int = 1) -> list[Block]:
    sets = list(model_steps(data))
    return at_once(lambda each: model_block(*each, traces), sets, n_processes)


def all_op_blocks(data: Path) -> list[Block]:
    return list(op_blocks(data))


def sample_ops(block: Block) -> Block:
    """Some rows of each op, device and kind of size; rows at the floor say nothing about kernels.

    P4 `linear` rows with random sizes reach a quarter of what its other rows do, for no known reason: they are scored
    but not learned from.
    """
    rng = np.random.default_rng(0)
    n_each = _ELEMENTWISE_ROWS_PER_OP if block.name == "elementwise" else _ROWS_PER_OP
    tags = block.tags
    groups = np.array(["|".join(key) for key in zip(tags["device"], tags["op"], tags["dims"], strict=True)])
    keep = np.zeros(block.n_rows, dtype=bool)
    for group in np.unique(groups):
        rows = np.flatnonzero((groups == group) & ~tags["is_floor"])
        keep[rng.choice(rows, min(len(rows), n_each), replace=False)] = True
    return block.take(keep & ~_is_odd_one_out(block))


def _is_odd_one_out(block: Block) -> NDArray[np.bool_]:
    tags = block.tags
    odd: NDArray[np.bool_] = (tags["device"] == "P4") & (tags["op"] == "linear") & (tags["dims"] == "random")
    return odd
