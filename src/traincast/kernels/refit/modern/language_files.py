"""Run files of language models as rows that can be asked about, or with the reason why not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from traincast.kernels.refit.modern.architecture import architecture_of
from traincast.kernels.refit.modern.language_row import LanguageRow, Sharding
from traincast.kernels.refit.op_rows import read_rows

LANGUAGE_FILES = (
    "llm_foundry.csv.gz",
    "misc_llm.csv.gz",
    "torchtitan.csv.gz",
    "stas_training.csv.gz",
    "dgxc_benchmarking.csv.gz",
    "nemo_megatron_bridge.csv.gz",
    "vtrain.csv.gz",
    "bigscience_tr11.csv.gz",
    "qwen1_finetune.csv.gz",
    "modded_nanogpt.csv.gz",
)
_SIXTEEN_BITS = ("bf16", "fp16", "fp16/bf16 (not told)")
_FORWARD = ("forward_s",)
_BOTH_PASSES = ("forward_s", "loss_s", "backward_s", "exposed_communication_s")
# What a node of these machines usually has, where a file does not tell: DGX A100, DGX H100 and later.
_USUAL_BETWEEN = {"A100": "1600Gb/s", "": "3200Gb/s"}

Line = Mapping[str, str]


def language_rows(data: Path) -> dict[str, list[LanguageRow]]:
    """By file."""
    return {file: rows_of(data / "modern" / file) for file in LANGUAGE_FILES}


def rows_of(path: Path) -> list[LanguageRow]:
    return [row_of(line, path.name) for line in read_rows(path)]


def row_of(line: Line, file: str) -> LanguageRow:
    """InternEvo's packed rows repeat the figures of its others to the digit: their attention spans one sample, too."""
    sharding, assumed = _sharding(line)
    seqlen = _int(line["seqlen"])
    settings = json.loads(line["model_settings"] or "{}")
    architecture = architecture_of(settings, seqlen) if seqlen else None
    n_gpus = _int(line["n_gpus"])
    between, is_told = _between(line)
    if n_gpus > 8 and not is_told:
        assumed.append(f"{between} between nodes")
    passes, is_passes_told = _passes(line, sharding, n_gpus)
    if not is_passes_told:
        assumed.append("all in one pass")
    if line["precision"] not in ("bf16",) and line["precision"] in _SIXTEEN_BITS:
        assumed.append("bf16 for fp16")
    if "muon" in line["optimizer"]:
        assumed.append("adamw for muon")
    recompute = line["activation_checkpointing"] or "not told"
    return LanguageRow(
        file=file,
        source=line["source"],
        device=line["device"],
        n_gpus=n_gpus,
        between=between,
        model=line["model"],
        architecture=architecture,
        precision=line["precision"],
        global_batch=_int(line["global_batch"]),
        accumulation_steps=passes,
        recompute=recompute,
        attention="eager" if line["attention"].startswith("eager") else "fused",
        is_compiled=line["compiled"] == "1",
        sharding=sharding,
        parts=_parts(line["note"]),
        step_s=float(line["step_ms"] or "nan") * 1e-3,
        not_asked=_why_not(line, settings, sharding, has_sizes=architecture is not None)
        or ("" if is_passes_told or sharding.pipeline_parallel == 1 else "micro batch of the pipeline not told"),
        assumed=tuple(assumed),
        memory_bytes=float(line["peak_memory_GB"]) * 1e9 if line["peak_memory_GB"] else None,
        tags={
            key: line[key]
            for key in ("grade", "date", "framework", "flag", "note", "sharding", "optimizer", "finetuning")
        },
    )


def _why_not(line: Line, settings: Mapping[str, object], sharding: Sharding, *, has_sizes: bool) -> str:
    """The first of these that holds; empty: it can be asked."""
    recompute = line["activation_checkpointing"]
    checks: list[tuple[bool, str]] = [
        (line["grade"] == "C", "grade C: ratios or memory only"),
        (not line["step_ms"], "no time of a step"),
        (line["precision"] not in _SIXTEEN_BITS, _narrow(line["precision"])),
        (bool(settings.get("experts")), "mixture of experts"),
        (line["finetuning"].lower().startswith(("lora", "qlora")), "LoRA"),
        (not has_sizes, "a size of the model, the sequence or the heads is not told"),
        (not line["global_batch"], "batch not told"),
        ("offload" in line["sharding"], "optimizer on the CPU"),
        (sharding.context_parallel > 1, "context parallel"),
        (recompute not in ("none", "full"), f"recomputation {'selective' if recompute else 'not told'}"),
    ]
    return next((why for is_so, why in checks if is_so), "")


def _narrow(precision: str) -> str:
    return "nvfp4" if "fp4" in precision else "int4" if "int4" in precision else "fp8"


def _sharding(line: Line) -> tuple[Sharding, list[str]]:
    """Tensor and pipeline parallel go with ddp alone today; what shards the optimizer beside them is left out."""
    text = line["sharding"]
    tensor, pipeline, context = (_size(text, key) for key in ("tp", "pp", "cp"))
    strategy = _strategy(text)
    assumed = []
    if tensor * pipeline > 1 and strategy != "ddp":
        assumed.append(f"ddp for {strategy} beside tensor and pipeline parallel")
        strategy = "ddp"
    if "zero1 over" in text and "all" not in text:
        assumed.append("zero1 over all devices")
    if _size(text, "vp") > 1:
        assumed.append("stages not interleaved")
    found = Sharding(strategy=strategy, tensor_parallel=tensor, pipeline_parallel=pipeline, context_parallel=context)
    return found, assumed


def _strategy(text: str) -> str:
    words: list[tuple[Callable[[str], bool], str]] = [
        (lambda s: "fsdp" in s or "zero3" in s, "fsdp"),
        (lambda s: "zero2" in s, "zero2"),
        (lambda s: "zero1" in s or "distopt" in s, "zero1"),
    ]
    return next((name for is_so, name in words if is_so(text)), "ddp")


def _size(text: str, key: str) -> int:
    match = re.search(rf"\b{key}=(\d+)", text)
    return int(match.group(1)) if match else 1


def _between(line: Line) -> tuple[str, bool]:
    """Bits a second of a node, and whether the file tells."""
    text = line["interconnect"]
    if match := re.search(r"(\d+)\s*x\s*(?:Omni-Path )?(\d+)\s*Gb", text):
        return f"{int(match.group(1)) * int(match.group(2))}Gb/s", True
    if match := re.search(r"(\d+)\s*Gb/s RDMA per GPU", text):
        return f"{8 * int(match.group(1))}Gb/s", True
    if match := re.search(r"(\d+)\s*Gb/s per node", text):
        return f"{match.group(1)}Gb/s", True
    return _USUAL_BETWEEN["A100" if line["device"].startswith("A100") else ""], False


def _passes(line: Line, sharding: Sharding, n_gpus: int) -> tuple[int, bool]:
    """Micro batches of one update, of one replica. From the micro batch, where their number is not told."""
    if line["grad_accum"]:
        return _int(line["grad_accum"]), True
    n_replicas = max(n_gpus // sharding.devices_per_replica, 1)
    batch, micro = _int(line["global_batch"]), _int(line["micro_batch"])
    if not batch or not micro:
        return 1, False
    return max(batch // (micro * n_replicas), 1), True


def _parts(note: str) -> tuple[str, ...]:
    if note.startswith("forward (infer)"):
        return _FORWARD
    return _BOTH_PASSES if note.startswith("forward+backward") else ()


def _int(text: str) -> int:
    return int(float(text)) if text else 0
