"""Captures the models of first sights that are no plain decoders, for `first_sight.py` and for fits of memory.

    python benchmarks/capture_more_models.py --data ../shared/data [--traces DIR]

Decoders with dropout (Megatron's tests) and with LoRA (LitGPT), BERT-large, ResNet-50, and random perceptrons. The
largest takes half a minute; all of them take five.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import checkout  # noqa: F401 - finds lab
import traincast as tc
from capture_language_models import Choices
from capture_language_models import capture as capture_decoder
from lab.accuracy.modern.memory_rows import MemoryRow, litgpt_rows, megatron_rows
from lab.accuracy.modern.mlp_rows import MlpRow, mlp_rows
from lab.accuracy.modern.model_rows import model_rows
from traincast.kernels.refit.folders import USUAL_TRACES

DROPOUT, LORA_RANK = 0.1, 8
ACTIVATIONS = (
    nn.ELU, nn.GELU, nn.Identity, nn.LeakyReLU, nn.Mish, nn.PReLU, nn.ReLU, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus,
    nn.Tanh,
)  # fmt: skip
MODULES: dict[str, Callable[[], nn.Module]] = {
    "Softmax": lambda: nn.Softmax(dim=-1),
    **{kind.__name__: kind for kind in ACTIVATIONS},
}


def decoder(row: MemoryRow) -> Any:
    architecture = row.row.architecture
    assert architecture is not None
    choices = Choices(
        is_fused=row.row.attention == "fused",
        is_recomputed=row.row.recompute == "full",
        dropout=DROPOUT if row.variant == "dropout" else 0.0,
        lora_rank=LORA_RANK if row.variant == "lora" else 0,
    )
    return capture_decoder(architecture, choices)


def perceptron(row: MlpRow) -> nn.Module:
    layers: list[nn.Module] = []
    before = row.n_inputs
    for kind, width in row.layers:
        if kind == "linear":
            layers.append(nn.Linear(before, width))
        elif kind == "batch_normalization":
            layers.append(nn.BatchNorm1d(width))
        elif kind == "dropout":
            layers.append(nn.Dropout(row.dropout))
        else:
            layers.append(MODULES[kind]())
        before = width
    return nn.Sequential(*layers)


def capture_perceptron(row: MlpRow) -> Any:
    with torch.device("meta"):
        model = perceptron(row)

    def loss(outputs: torch.Tensor, inputs: Any) -> torch.Tensor:
        return F.cross_entropy(outputs, torch.zeros(outputs.shape[0], dtype=torch.long, device=outputs.device))

    return tc.capture(model, lambda batch: torch.zeros(batch, row.n_inputs), loss=loss, optimizer="adam")


def named(name: str) -> Any:
    """Of the zoo; 'bert-large--mlm--128' has a head and a length."""
    model, *options = name.split("--")
    return tc.load_model(model, head=options[0], seqlen=int(options[1])) if options else tc.load_model(model)


def wanted(data: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    for row in (*megatron_rows(data), *litgpt_rows(data)):
        if not row.reason:
            yield row.trace, partial(named, row.trace) if row.variant == "encoder" else partial(decoder, row)
    for some in model_rows(data).values():
        for each in some:
            if not each.reason:
                yield each.trace, partial(named, each.trace)
    for mlp in mlp_rows(data):
        yield mlp.trace, partial(capture_perceptron, mlp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    arguments.traces.mkdir(parents=True, exist_ok=True)
    for name, capture in wanted(arguments.data):
        path = arguments.traces / f"{name}.trace"
        if path.exists():
            continue
        start = time.perf_counter()
        try:
            capture().save(path)
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        except Exception as error:  # noqa: BLE001 - one model must not stop the others
            print(f"{name}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
