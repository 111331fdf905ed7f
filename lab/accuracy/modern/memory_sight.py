"""Asks for the memory of a measured run as a user would, and takes off what its tool does not count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lab.accuracy.modern.asking import NO_TRACE
from lab.accuracy.modern.memory_rows import MemoryRow, one_vote_each
from lab.accuracy.modern.mlp_rows import MLPS, MlpRow
from lab.accuracy.modern.scored_rows import FileCount, ScoredRows
from traincast.api.forecasts import forecast
from traincast.api.models import estimate_memory
from traincast.errors import InputError
from traincast.memory.overhead import overhead_of
from traincast.trace.file import read_trace
from traincast.units import GIGA

_MIXED, _STATE = "16 bytes a parameter", 16  # master weights, gradients and two moments in fp32
_FROZEN, _HALF = "2 bytes a parameter", 2
_PERCEPTRON, _EMPTY_BYTES = "1.55 GB and 16 bytes a parameter", 1.55 * GIGA


def of_memory(file: str, rows: Sequence[MemoryRow], traces: Path) -> tuple[list[ScoredRows], FileCount]:
    """A set whether one GPU has the whole model. A question that many rows ask is one vote, and they all are asked."""
    not_asked = Counter(row.reason for row in rows if row.reason)
    sets: dict[str, list[tuple[MemoryRow, float]]] = defaultdict(list)
    askable = [row for row in rows if not row.reason]
    n_of_question = Counter(row.question for row in askable)
    for row in one_vote_each(askable):
        if not (traces / f"{row.trace}.trace").exists():
            not_asked[NO_TRACE] += n_of_question[row.question]
            continue
        try:
            sets[_set_name(file, row)].append((row, ask_memory(row, traces)))
        except InputError as error:
            not_asked[f"refused: {str(error).partition(':')[0]}"] += n_of_question[row.question]
    found = [_scored(name, file, some) for name, some in sorted(sets.items()) if some]
    assumed = Counter(each for row in askable for each in _assumed(row))
    return found, FileCount(file=file, n_rows=len(rows), not_asked=dict(not_asked), assumed=dict(assumed))


def _set_name(file: str, row: MemoryRow) -> str:
    stem = file.removesuffix(".csv.gz")
    if row.variant == "lora":
        return f"{stem}: LoRA, {'one GPU' if row.row.n_gpus == 1 else 'FSDP, all recomputed'}"
    what = "encoder" if row.variant == "encoder" else "decoders"
    return f"{stem}: {what}, {'split' if row.row.sharding.devices_per_replica > 1 else 'whole'}"


def _assumed(row: MemoryRow) -> list[str]:
    if row.variant == "lora":
        return []
    is_last = row.row.sharding.pipeline_parallel > 1
    return ["fp32 weights, gradients and moments beside 16 bits"] + ["the fullest stage for the last"] * is_last


def ask_memory(row: MemoryRow, traces: Path) -> float:
    """Bytes of a device. The context is not PyTorch's; what its allocator cannot reuse, 4 % at most, is left in."""
    run = row.row
    answer = forecast(
        read_trace(traces / f"{row.trace}.trace"),
        run.place,
        run.global_batch,
        precision=_precision(row),
        optimizer="adamw",
        accumulation_steps=run.accumulation_steps,
        strategy=run.sharding.strategy,
        tensor_parallel=run.sharding.tensor_parallel,
        pipeline_parallel=run.sharding.pipeline_parallel,
    )
    question = answer.question
    context = overhead_of(question.graph, question.micro_batch_size, device=question.device).context_bytes
    return answer.peak_memory_bytes - (0 if row.kind == "reported" else context)


def _precision(row: MemoryRow) -> str:
    if row.variant == "lora":
        return "bf16"
    return "amp-fp16" if row.row.precision.startswith("fp16") else "amp-bf16"


def _scored(name: str, file: str, pairs: Sequence[tuple[MemoryRow, float]]) -> ScoredRows:
    is_frozen = pairs[0][0].variant == "lora"
    return ScoredRows(
        name=name,
        file=file,
        observed=np.array([row.peak_bytes for row, _ in pairs]),
        predicted=np.array([answer for _, answer in pairs]),
        baseline=np.array([_held_bytes(row, _HALF if is_frozen else _STATE) for row, _ in pairs]),
        quantity="peak memory",
        rule=_FROZEN if is_frozen else _MIXED,
    )


def _held_bytes(row: MemoryRow, bytes_per_parameter: int) -> float:
    """Of the part of the model that a device has."""
    run = row.row
    assert run.architecture is not None
    n_parts = run.n_gpus if run.sharding.strategy == "fsdp" else run.sharding.devices_per_replica
    return bytes_per_parameter * run.architecture.n_parameters / n_parts


def of_mlps(rows: Sequence[MlpRow], traces: Path) -> tuple[list[ScoredRows], FileCount]:
    """All that the device reports, its context included."""
    asked = [row for row in rows if (traces / f"{row.trace}.trace").exists()]
    not_asked = {NO_TRACE: len(rows) - len(asked)} if len(asked) < len(rows) else {}
    count = FileCount(
        file=MLPS, n_rows=len(rows), not_asked=not_asked, assumed={"A100-SXM4-40GB": len(asked)} if asked else {}
    )
    if not asked:
        return [], count
    found = ScoredRows(
        name="gpumemnet_mlp: perceptrons, fp32, Adam",
        file=MLPS,
        observed=np.array([row.peak_bytes for row in asked]),
        predicted=np.array([ask_mlp(row, traces) for row in asked], dtype=np.float64),
        baseline=np.array([_EMPTY_BYTES + _STATE * row.n_parameters for row in asked]),
        quantity="peak memory",
        rule=_PERCEPTRON,
    )
    return [found], count


def ask_mlp(row: MlpRow, traces: Path) -> float:
    trace = read_trace(traces / f"{row.trace}.trace")
    return estimate_memory(trace, row.batch_size, on=row.place, precision="fp32", optimizer="adam").total_bytes
