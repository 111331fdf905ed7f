"""Which GPU is faster? The order of forecasts, and whether it is that of every measured pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.accuracy.modern.cases import Rooms
from lab.accuracy.modern.left_out import Evidence, LeftOut
from traincast.api.forecasts import forecast
from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import shipped
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern.kernel_row import KernelRow, block_of, product
from traincast.trace.graph import Floats

GPUS = (
    "T4", "V100-PCIe-32GB", "V100-SXM2-32GB", "RTX-3090", "A10", "A40", "A100-PCIe-40GB", "A100-SXM4-40GB",
    "A100-PCIe-80GB", "A100-SXM4-80GB", "L4", "L40S", "RTX-4090", "H20-SXM5-96GB", "H100-PCIe-80GB", "H100-NVL-94GB",
    "H100-SXM5-80GB", "GH200-96GB", "H200-SXM", "RTX-5090", "B200", "GB200", "MI250-GCD", "MI300X",
)  # fmt: skip
PRODUCTS = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 1024),
    (16384, 4096, 4096),
    (8192, 8192, 8192),
)
MODELS = (("resnet50", "amp-fp16", 128), ("bert-large", "amp-fp16", 32), ("gpt2-xl", "bf16", 8))
_CLEAR = 0.10  # measurements that differ by less are no order


@dataclass(frozen=True, slots=True)
class Timed:
    """One thing on one GPU: measured, and forecast, per unit of work where batches differ."""

    what: tuple[str, ...]
    device: str
    observed_s: float
    predicted_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A pair that the forecast puts the wrong way round."""

    what: str
    faster: str
    slower: str
    observed_ratio: float  # slower over faster, as measured
    predicted_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Pairs of GPUs measured on the same thing."""

    kind: str
    n_pairs: int
    n_clear: int
    disagreements: tuple[Disagreement, ...]

    @property
    def n_agreeing(self) -> int:
        return self.n_clear - len(self.disagreements)


def agreement_of(kind: str, rows: Iterable[Timed]) -> Agreement:
    """Repeats on one GPU count as their median."""
    groups: dict[tuple[str, ...], dict[str, list[Timed]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row.what][row.device].append(row)
    n_pairs, n_clear, wrong = 0, 0, []
    for what, by_device in groups.items():
        for pair in combinations(sorted(by_device), 2):
            n_pairs += 1
            one, other = ((name, _middle(by_device[name])) for name in pair)
            found = _compared(what, one, other)
            n_clear += found.observed_ratio > 1.0 + _CLEAR
            if found.observed_ratio > 1.0 + _CLEAR and found.predicted_ratio < 1.0:
                wrong.append(found)
    return Agreement(kind=kind, n_pairs=n_pairs, n_clear=n_clear, disagreements=tuple(wrong))


def _middle(rows: list[Timed]) -> tuple[float, float]:
    return float(np.median([row.observed_s for row in rows])), float(np.median([row.predicted_s for row in rows]))


def _compared(
    what: tuple[str, ...], one: tuple[str, tuple[float, float]], other: tuple[str, tuple[float, float]]
) -> Disagreement:
    (faster, (fast_s, fast_guess_s)), (slower, (slow_s, slow_guess_s)) = sorted((one, other), key=lambda e: e[1][0])
    return Disagreement(
        what=", ".join(what),
        faster=faster,
        slower=slower,
        observed_ratio=slow_s / fast_s,
        predicted_ratio=slow_guess_s / fast_guess_s,
    )


def agreements_of(rooms: Rooms, evidence: Evidence, left_out: LeftOut = "nothing") -> list[Agreement]:
    """By kind of measurement. `left_out` "GPU": each GPU is forecast by the fit without it."""
    examples = [
        each
        for block in rooms.named("nvidia examples")
        for each in _timed(block, evidence.seconds(block, left_out), ("family", "precision", "batch"))
    ]
    images = [
        replace(each, what=(layout, *each.what))
        for layout in ("nchw", "nhwc")
        for name in (f"timm inference {layout}", f"timm inference RTX-4090 {layout}")
        for block in rooms.named(name)
        if block.name == name
        for each in _timed(block, evidence.seconds(block, left_out), ("model", "img_size", "batch"))
    ]
    language = [each for block in rooms.named("language models") for each in _per_token(block, evidence, left_out)]
    ceilings = [each for block in rooms.named("product ceilings") for each in _per_flop(block, evidence, left_out)]
    return [
        agreement_of("NVIDIA's examples: model, precision, batch", examples),
        agreement_of("language models: model, tokens, recomputed or not; time a token", language),
        agreement_of("the fastest product of each GPU: precision; time a flop", ceilings),
        agreement_of("image models: model, batch, layout", images),
    ]


def _timed(
    block: Block, predicted_s: Floats, tags: tuple[str, ...], unit: NDArray[Any] | float = 1.0
) -> Iterator[Timed]:
    units = np.broadcast_to(unit, block.n_rows)
    for row in range(block.n_rows):
        what = tuple(str(block.tags[tag][row]) for tag in tags)
        seconds = (float(block.observed_s[row] / units[row]), float(predicted_s[row] / units[row]))
        yield Timed(what, str(block.tags["device"][row]), *seconds)


def _per_token(block: Block, evidence: Evidence, left_out: LeftOut) -> Iterator[Timed]:
    tags = ("source", "family", "seqlen", "recompute")
    return _timed(block, evidence.seconds(block, left_out), tags, block.tags["tokens"])


def _per_flop(block: Block, evidence: Evidence, left_out: LeftOut) -> Iterator[Timed]:
    flop = np.bincount(block.row, weights=block.kernels.sizes["flop"], minlength=block.n_rows)
    return _timed(block, evidence.seconds(block, left_out), ("precision",), flop)


@dataclass(frozen=True, slots=True)
class Order:
    """Seconds of each product, then of each model, on one GPU."""

    device: str
    seconds: tuple[float, ...]

    @property
    def speed(self) -> float:
        """The mean of logarithms: every thing counts alike."""
        return float(np.exp(-np.mean(np.log(self.seconds))))


def orders() -> list[Order]:
    """With the fit that ships, the fastest first. Sixteen bits are bf16 where a GPU has it, else fp16."""
    found = [Order(gpu, (*_product_seconds(gpu).tolist(), *_model_seconds(gpu))) for gpu in GPUS]
    return sorted(found, key=lambda order: -order.speed)


def _product_seconds(gpu: str) -> Floats:
    precision = "bf16" if find_device(gpu).bf16_flop_per_s else "fp16"
    return reference_products(gpu, precision).predict(shipped().coefficients)


def reference_products(gpu: str, precision: str) -> Block:
    rows = [
        KernelRow(
            file="", source="", kernel="gemm", device=gpu, precision=precision, direction="forward", backend="",
            seconds=1.0, calls=(product(*sizes, precision=precision),), shape="",
        )
        for sizes in PRODUCTS
    ]  # fmt: skip
    return block_of("reference products", rows)


def _model_seconds(gpu: str) -> Iterator[float]:
    has_bf16 = bool(find_device(gpu).bf16_flop_per_s)
    for model, precision, batch in MODELS:
        asked = precision if has_bf16 or precision != "bf16" else "amp-fp16"
        optimizer = "momentum" if model.startswith("resnet") else "adamw"
        yield forecast(model, gpu, batch, precision=asked, optimizer=optimizer).step_s
