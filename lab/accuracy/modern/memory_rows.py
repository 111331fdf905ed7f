"""Measured peaks of memory of language models: Megatron-LM's tests, and LitGPT's fine-tuning with LoRA."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lab.accuracy.modern.askable import reason_of
from traincast.kernels.refit.modern.language_files import row_of
from traincast.kernels.refit.modern.language_row import LanguageRow
from traincast.kernels.refit.op_rows import read_rows

MEGATRON, LITGPT = "megatron_golden.csv.gz", "litgpt.csv.gz"

# What PyTorch's allocator handed out, what it keeps from the driver, and all that the device reports.
MemoryKind = Literal["allocated", "reserved", "reported"]

# How a captured model differs from the plain decoder of the runs that were timed.
Variant = Literal["dropout", "encoder", "lora"]

_SENTENCES = "bert"  # an encoder whose shapes are BERT-large's
_WORDS = {"gpt": 50257, _SENTENCES: 30522}  # of the tokenizer, before padding
_PADDED_TO = 128  # times tensor parallelism: Megatron's --make-vocab-size-divisible-by
# Arguments that change what a device holds, and that no question can name.
_UNKNOWN_ARGUMENTS = {
    "--perform-rl-step": "reinforcement learning",
    "--qk-layernorm": "norms of queries and keys",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A peak of one device, and the run that had it. `trace` is the name of the file with the model's step."""

    row: LanguageRow
    kind: MemoryKind
    peak_bytes: float
    trace: str
    variant: Variant
    not_asked: str = ""

    @property
    def reason(self) -> str:
        return reason_of(self.not_asked, self.row.device)

    @property
    def question(self) -> tuple[Any, ...]:
        """Rows with the same one are one vote."""
        row = self.row
        return (self.trace, row.place, row.sharding, row.global_batch, row.accumulation_steps, row.precision)


def megatron_rows(data: Path) -> list[MemoryRow]:
    """In the order of the file. Time is no subject: most of these models are too small for it."""
    return [megatron_row(line) for line in read_rows(data / "modern" / MEGATRON)]


def megatron_row(line: Mapping[str, str]) -> MemoryRow:
    """Megatron drops a tenth of the activations, unless told otherwise, and pads the vocabulary."""
    arguments: dict[str, Any] = json.loads(line["args"])
    settings = json.loads(line["model_settings"])
    kind = line["model"].partition("/")[0]
    tensor = int(arguments.get("--tensor-model-parallel-size", 1))
    if settings.get("vocab") == "tokenizer":
        unit = _PADDED_TO * tensor
        settings["vocab"] = -(-_WORDS.get(kind, _WORDS["gpt"]) // unit) * unit
    settings["norm"] = settings["norm"].lower()
    settings["no_bias"] = bool(arguments.get("--disable-bias-linear"))
    is_written_out = "unfused" in line["attention"] or line["attention"] == "local"
    changed = {
        **line,
        "model_settings": json.dumps(settings),
        "attention": "eager" if is_written_out else line["attention"],
        "device": line["device"].partition(" (")[0],
    }
    row = row_of(changed, MEGATRON)
    name = "" if row.architecture is None else row.trace_name
    return MemoryRow(
        row=row,
        kind="allocated",
        peak_bytes=float(line["peak_memory_GB"] or "nan") * 1e9,
        trace=f"bert-large--mlm--{row.architecture.seqlen if row.architecture else 0}"
        if kind == _SENTENCES
        else f"{name}--dropout",
        variant="encoder" if kind == _SENTENCES else "dropout",
        not_asked=_why_not_megatron(line, settings, arguments, row),
    )


def _why_not_megatron(
    line: Mapping[str, str], settings: Mapping[str, Any], arguments: Mapping[str, Any], row: LanguageRow
) -> str:
    """The first of these that holds; empty: it can be asked."""
    kind, text = line["model"].partition("/")[0], line["sharding"]
    is_split = row.sharding.tensor_parallel * row.sharding.pipeline_parallel > 1
    checks: list[tuple[bool, str]] = [
        (not line["peak_memory_GB"], "no peak"),
        (bool(settings.get("experts")) or kind in ("moe", "mixtral"), "mixture of experts"),
        (kind not in _WORDS or "--is-hybrid-model" in arguments, "no decoder or encoder of attention alone"),
        ("--multi-latent-attention" in arguments, "multi-head latent attention"),
        (line["precision"].startswith("fp8"), "fp8"),
        ("muon" in line["optimizer"], "optimizer muon"),
        (row.sharding.context_parallel > 1, "context parallel"),
        (";sp" in text, "sequence parallel"),
        ("vp_layers" in text or "vp=" in text, "interleaved stages"),
        (is_split and ("distopt" in text or "fsdp" in text), "optimizer sharded beside tensor or pipeline parallel"),
        (not line["n_gpus"], "number of GPUs not told"),
        *((argument in arguments, why) for argument, why in _UNKNOWN_ARGUMENTS.items()),
        (row.architecture is None, "a size of the model is not told"),
    ]
    return next((why for is_so, why in checks if is_so), "")


def one_vote_each(rows: Iterable[MemoryRow]) -> list[MemoryRow]:
    """Of every question the median of its peaks, each test counting once: with the newest version of Megatron."""
    newest: dict[tuple[Any, ...], dict[str, MemoryRow]] = {}
    for row in rows:
        tests = newest.setdefault(row.question, {})
        before = tests.get(row.row.model)
        if before is None or _age(before) >= _age(row):
            tests[row.row.model] = row
    return [_median(list(tests.values())) for tests in newest.values()]


def _age(row: MemoryRow) -> int:
    return 0 if row.row.tags["framework"].endswith("dev") else 1


def _median(rows: list[MemoryRow]) -> MemoryRow:
    ordered = sorted(row.peak_bytes for row in rows)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return replace(rows[0], peak_bytes=middle)


def litgpt_rows(data: Path) -> list[MemoryRow]:
    return [litgpt_row(line) for line in read_rows(data / "modern" / LITGPT)]


def litgpt_row(line: Mapping[str, str]) -> MemoryRow:
    """The longest sample sets the peak: its length is asked. The micro batch is of one GPU.

    Models without gates are of the family of GPT-NeoX, with layer norm and biases; LitGPT ties no embeddings.
    """
    n_gpus, micro = int(line["n_gpus"]), int(line["micro_batch"])
    settings = json.loads(line["model_settings"])
    norm = "rmsnorm" if settings["gated_mlp"] else "layernorm"
    settings |= {"tied_embeddings": False, "norm": norm, "pos": "rope"}
    changed = {"model_settings": json.dumps(settings), "global_batch": str(n_gpus * micro), "precision": "bf16"}
    row = row_of({**line, **changed}, LITGPT)
    row = replace(row, recompute=line["activation_checkpointing"].partition(" ")[0])
    method = line["finetuning"].partition(" ")[0]
    checks = (
        (not line["peak_memory_GB"], "no peak: out of memory, or not supported"),
        ("bnb" in line["precision"], "4-bit weights"),
        (method != "lora", "adapters"),
        (row.architecture is None, "a size of the model is not told"),
    )
    return MemoryRow(
        row=row,
        kind="reserved",
        peak_bytes=float(line["peak_memory_GB"] or "nan") * 1e9,
        trace="" if row.architecture is None else f"{row.trace_name}--lora8qv",
        variant="lora",
        not_asked=next((why for is_so, why in checks if is_so), ""),
    )
