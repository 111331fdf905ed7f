"""How far is a lowered step from the real one? Runs real CPU steps of zoo models and compares op by op.

python benchmarks/real_steps.py [--write]    (--write updates docs/real_steps.md)
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traincast.errors import CaptureError
from traincast.frontend.capturing.capture import capture
from traincast.frontend.capturing.recorder import Recorder
from traincast.frontend.capturing.run_step import run_step
from traincast.frontend.capturing.symbolic import join
from traincast.frontend.models.training_step import build_for_training
from traincast.memory.timeline import peak_bytes
from traincast.trace.graph import Graph
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes
from traincast.units import MIB

BATCH = 4
CASES: tuple[tuple[str, dict[str, int]], ...] = (
    ("mnist_cnn", {}),
    ("alexnet", {}),
    ("cifar_resnet20", {}),
    ("resnet50", {"image_size": 96}),
    ("mobilenet_v2", {}),
    ("densenet121", {"image_size": 64}),
    ("efficientnet_b0", {"image_size": 96}),
    ("vit_b_16", {}),
    ("lstm_lm", {}),
    ("bert-base", {"seqlen": 128}),
    ("gpt2", {"seqlen": 128}),
)
PRECISIONS = {"fp32": None, "amp-bf16": torch.bfloat16}
PAGE = Path(__file__).parents[1] / "docs" / "real_steps.md"


def real_graph(module: Any, inputs: Any, loss: Any, autocast: torch.dtype | None) -> Graph:
    """One real step on CPU tensors, written down by the recorder of the capture."""
    recorder = Recorder([path for path, _ in module.named_modules()])
    context = torch.autocast("cpu", dtype=autocast) if autocast else None
    run_step(module, inputs, recorder, loss=loss, train=True, autocast=context)
    module.zero_grad(set_to_none=True)
    return join({BATCH: recorder.recording}, recorder.module_names, [])


def products(graph: Graph) -> Counter[Any]:
    """Matrix products and convolutions, with the shapes and dtypes that they read."""
    found: Counter[Any] = Counter()
    for op, inputs in enumerate(graph.op_inputs.rows()):
        if "mm" in graph.name_of(op) or "convolution" in graph.name_of(op):
            found[graph.name_of(op), *((graph.shape_of(t, BATCH), int(graph.tensor_dtype[t])) for t in inputs)] += 1
    return found


def compare(name: str, options: dict[str, int]) -> list[str]:
    """Rows of the table for one model."""
    module, example, loss = build_for_training(name, **options)
    trace = capture(module, example, loss=loss)
    batch = np.array([BATCH])
    label = name + "".join(f", {option} {value}" for option, value in options.items())
    rows = []
    for precision, dtype in PRECISIONS.items():
        lowered = lower(trace, target="cpu", settings=Settings(precision, "none"))
        try:
            real = real_graph(module, example(BATCH), loss, dtype)
        except CaptureError:
            rows.append(f"| {label} | {precision} | not run: this CPU has no such kernel | | | | |")
            continue
        expected, found = products(real), products(lowered)
        n_different = sum(((expected - found) + (found - expected)).values())
        moved = op_bytes(lowered, batch).sum() / op_bytes(real, batch).sum() - 1
        peaks = peak_bytes(lowered, batch)[0], peak_bytes(real, batch)[0]
        rows.append(
            f"| {label} | {precision} | {sum(expected.values())} | {n_different} | {100 * moved:+.2f} % | "
            f"{100 * (peaks[0] / peaks[1] - 1):+.2f} % | {peaks[1] / MIB:,.1f} MiB |"
        )
    return rows


def main() -> None:
    """Prints the table; with --write, the page too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update docs/real_steps.md")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    lines = [
        "| model | precision | products | products that differ | bytes moved | peak | peak of the real step |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, options in CASES:
        lines += compare(name, options)
        print(*lines[-2:], sep="\n")
    page = f"""# Lowered steps against real ones

Written by `python benchmarks/real_steps.py --write`. One real CPU step at batch {BATCH}, dropout on, written down by
the recorder of the [capture](capture.md), against the trace [lowered](lowering.md) for `cpu`. *Products*: every matrix
product and convolution, in shapes and dtypes. *Bytes moved* by all ops and *peak* of tracked bytes: lowered over real,
minus one. torch {torch.__version__}, Python {platform.python_version()}.

{chr(10).join(lines)}

The LSTM is one op here and one a layer in PyTorch; its workspace is an average. A lowered GPT-2 has one copy a layer
too many.
"""
    if arguments.write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
