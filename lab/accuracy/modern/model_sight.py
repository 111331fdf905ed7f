"""Asks for measured steps of models by name, and counts the files of which nothing can be asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lab.accuracy.modern.asking import NO_TRACE
from lab.accuracy.modern.model_rows import ModelRow
from lab.accuracy.modern.scored_rows import FileCount, ScoredRows
from traincast.api.forecasts import forecast
from traincast.errors import InputError
from traincast.forecasting.forecast import Forecast
from traincast.kernels.refit.op_rows import read_rows
from traincast.trace.file import read_trace
from traincast.trace.trace import Trace

LAUNCHER, LONG = "nemo_launcher_a100.csv.gz", "nemo_long_sequence.csv.gz"


def of_models(file: str, rows: Sequence[ModelRow], traces: Path) -> tuple[list[ScoredRows], FileCount]:
    """A set a model, device, precision, and whether several nodes ran it."""
    not_asked = Counter(row.reason for row in rows if row.reason)
    assumed: Counter[str] = Counter()
    sets: dict[str, list[tuple[ModelRow, Forecast, Forecast]]] = defaultdict(list)
    for row in rows:
        path = traces / f"{row.trace}.trace"
        if row.reason:
            continue
        if not path.exists():
            not_asked[NO_TRACE] += 1
            continue
        trace = read_trace(path)
        try:
            answers = _ask(row, trace, "traincast"), _ask(row, trace, "roofline")
        except InputError as error:
            not_asked[f"refused: {str(error).partition(':')[0]}"] += 1
            continue
        assumed.update(row.assumed)
        sets[_set_name(row)].append((row, *answers))
    found = [_scored(name, file, some) for name, some in sorted(sets.items())]
    return found, FileCount(file=file, n_rows=len(rows), not_asked=dict(not_asked), assumed=dict(assumed))


def _set_name(row: ModelRow) -> str:
    where = "several nodes" if row.n_nodes > 1 else "one node"
    return f"{row.file.removesuffix('.csv.gz')}: {row.model}, {row.device_name} {row.precision}, {where}"


def _ask(row: ModelRow, trace: Trace, method: str) -> Forecast:
    """A roofline does not distinguish layouts."""
    return forecast(
        trace,
        row.place,
        row.batch_size,
        precision=row.precision,
        optimizer=row.optimizer,
        layout="nchw" if method == "roofline" else row.layout,
        accumulation_steps=row.accumulation_steps,
        method=method,
    )


def _scored(name: str, file: str, answers: Sequence[tuple[ModelRow, Forecast, Forecast]]) -> ScoredRows:
    return ScoredRows(
        name=name,
        file=file,
        observed=np.array([row.step_s for row, _, _ in answers]),
        predicted=np.array([ours.step_s for _, ours, _ in answers]),
        log_sd=np.array([ours.log_sd for _, ours, _ in answers]),
        baseline=np.array([bound.step_s for _, _, bound in answers]),
    )


def of_ratios(data: Path) -> list[FileCount]:
    """Files of grade C: good for ratios of two rows, if both could be asked about. None of these can."""
    reasons = {LAUNCHER: _why_not_launcher, LONG: _why_not_long}
    found = []
    for file, why_not in reasons.items():
        lines = read_rows(data / "modern" / file)
        counted = Counter(why_not(line) for line in lines)
        found.append(FileCount(file=file, n_rows=len(lines), not_asked=dict(counted.most_common())))
    return found


def _why_not_launcher(line: Mapping[str, str]) -> str:
    if line["model"].startswith("t5"):
        return "encoder and decoder"
    if not line["global_batch"]:
        return "batch not told, so that runs on more GPUs may be larger ones"
    return "no time of a step" if not line["tokens_per_s_per_gpu"] else "how the model is shared is not told"


def _why_not_long(line: Mapping[str, str]) -> str:
    return "how the model is shared is not told, and fp8" if line["note"] == "without CP" else "context parallel, fp8"
