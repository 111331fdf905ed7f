"""Measured layouts of language models, and each as a user would ask about it; or why it cannot be asked."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traincast.kernels.refit.modern.language_files import rows_of
from traincast.kernels.refit.modern.language_row import LanguageRow

FILES = ("dgxc_benchmarking", "nemo_megatron_bridge", "vtrain", "bigscience_tr11", "misc_llm", "llm_foundry")
_DOMAIN = 64  # of the 72 devices that NVLink joins, those that runs in powers of two use
_DOMAIN_BETWEEN = "25600Gb/s"  # 400 Gb/s a device
_VENDOR = ("NeMo", "Megatron-LM", "Megatron-Core", "Megatron-DeepSpeed")
# Their files do not say whether activations are made again. NeMo's recipes of dense models on H100 have none.
_NOT_TOLD_IS_NONE = ("nemo", "megatron-core")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """`row` without recomputation, as its model is captured; `why_not` is empty where `options` can be asked."""

    row: LanguageRow
    place: str = ""
    options: dict[str, Any]
    is_assumed: bool = False  # the micro batch, where the source does not tell it
    why_not: str = ""

    @property
    def name(self) -> str:
        """Source, device, precision and recomputation: what a constant MFU could stand for."""
        assumed = ", micro batch assumed" * self.is_assumed
        recomputed = ", recomputed" * (self.row.recompute == "full")
        return f"{self.source}, {self.row.device}, {_precision(self.row)}{recomputed}{assumed}"

    @property
    def source(self) -> str:
        """Releases of NeMo are taken together."""
        return "nemo" if self.row.source.startswith("nemo-") else self.row.source

    @property
    def words(self) -> str:
        """For a table of the worst."""
        row, split = self.row, self.row.sharding
        sizes = f"t{split.tensor_parallel} c{split.context_parallel} p{split.pipeline_parallel}"
        schedule = self.options.get("pipeline_schedule", "1f1b")
        pieces = f" {schedule}" if schedule != "1f1b" else ""
        return (
            f"{row.model}, {row.n_gpus:,} GPUs, {sizes}{pieces}, batch {row.global_batch:,} in {self.passes:,} passes"
        )

    @property
    def passes(self) -> int:
        return int(self.options.get("accumulation_steps", 1))


def layouts(data: Path) -> list[Layout]:
    """Of several devices, from every file."""
    return [layout_of(row) for name in FILES for row in rows_of(data / "modern" / f"{name}.csv.gz") if row.n_gpus != 1]


def layout_of(row: LanguageRow) -> Layout:
    why_not = _why_not(row)
    if why_not:
        return Layout(row=row, options={}, why_not=why_not)
    split = row.sharding
    passes, is_assumed = row.accumulation_steps, False
    if "all in one pass" in row.assumed and row.source.startswith(("narayanan", "megatron-core")):
        passes, is_assumed = max(row.global_batch * split.devices_per_replica // row.n_gpus, 1), True
    options: dict[str, Any] = {
        "precision": _precision(row),
        "optimizer": "adamw",
        "accumulation_steps": passes,
        "strategy": _strategy(row),
        "recompute": "none" if row.recompute != "full" else "reentrant" if _is_composer(row) else "full",
        "tensor_parallel": split.tensor_parallel,
        "pipeline_parallel": split.pipeline_parallel,
        "context_parallel": split.context_parallel,
    }
    if _is_vendor(row):
        options |= {"stack": "megatron", "compiled": True}
    n_pieces = _pieces(row)
    if n_pieces > 1 and split.pipeline_parallel > 1:
        options["pipeline_schedule"] = f"interleaved:{n_pieces}"
    return Layout(row=row, place=_place(row), options=options, is_assumed=is_assumed)


def plain(row: LanguageRow) -> LanguageRow:
    """The row of the model as it is captured."""
    return replace(row, recompute="none")


def _why_not(row: LanguageRow) -> str:
    """The first of these that holds."""
    text = row.tags["sharding"]
    is_unknown = row.recompute not in ("none", "full")
    checks: list[tuple[bool, str]] = [
        (row.tags["grade"] == "C", "grade C: ratios or memory only"),
        (not row.step_s > 0, "no time of a step"),
        (row.architecture is None, "mixture of experts, or a size is not told"),
        ("lora" in row.tags["finetuning"].lower(), "adapters whose rank is not told"),
        ("fp4" in row.precision, "nvfp4"),
        (row.device_name is None, f"no such device: {row.device}"),
        ("pp=41" in text, "41 stages of 32 layers: the layout is misprinted"),
        ("tp=;" in text, "layout not told"),
        (is_unknown and bool(row.recompute != "not told"), "recomputation of some ops only"),
        (is_unknown and not row.source.startswith(_NOT_TOLD_IS_NONE), "recomputation not told"),
        (not row.global_batch, "batch not told"),
    ]
    return next((why for is_so, why in checks if is_so), "")


def _precision(row: LanguageRow) -> str:
    return "fp8" if "fp8" in row.precision else row.asked_precision


def _is_vendor(row: LanguageRow) -> bool:
    return row.tags["framework"].startswith(_VENDOR)


def _is_composer(row: LanguageRow) -> bool:
    return row.source == "llm-foundry"


def _strategy(row: LanguageRow) -> str:
    text = row.tags["sharding"]
    if "fsdp" in text:
        return "fsdp"
    is_sharded = "zero1" in text or "distopt" in text or "distributed" in row.tags["optimizer"]
    return "zero1" if is_sharded else "ddp"


def _pieces(row: LanguageRow) -> int:
    match = re.search(r"\bvp=(\d+)", row.tags["sharding"])
    return int(match.group(1)) if match else 1


def _place(row: LanguageRow) -> str:
    if not row.device.startswith("GB"):
        return row.place
    if row.n_gpus <= _DOMAIN:
        return f"1x{row.n_gpus}x{row.device_name}"
    return f"{row.n_gpus // _DOMAIN}x{_DOMAIN}x{row.device_name}@{_DOMAIN_BETWEEN}"
