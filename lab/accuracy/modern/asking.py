"""Asks for a measured step of a language model as a user would: the trace, the devices, the batch, nothing fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.api.forecasts import forecast
from traincast.errors import InputError
from traincast.forecasting.forecast import Forecast
from traincast.kernels.refit.modern.language_row import LanguageRow
from traincast.trace.file import read_trace
from traincast.trace.trace import Trace

NO_TRACE = "trace not captured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was said about a row: seconds of the step, the spread, and the roofline's seconds; or why nothing was."""

    row: LanguageRow
    step_s: float = np.nan
    log_sd: float = np.nan
    roofline_s: float = np.nan
    refused: str = ""


def ask_all(rows: Sequence[LanguageRow], traces: Path) -> list[Answer]:
    """In the order of the rows. Rows of one trace are asked one after the other, so that it is read once."""
    found: dict[int, Answer] = {}
    by_trace: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if row.reason:
            found[number] = Answer(row=row, refused=row.reason)
        else:
            by_trace.setdefault(row.trace_name, []).append(number)
    for name, numbers in by_trace.items():
        path = traces / f"{name}.trace"
        trace = read_trace(path) if path.exists() else None
        for number in numbers:
            found[number] = Answer(row=rows[number], refused=NO_TRACE) if trace is None else ask(rows[number], trace)
    return [found[number] for number in range(len(rows))]


def ask(row: LanguageRow, trace: Trace) -> Answer:
    """With the default method and with the roofline."""
    try:
        ours, bound = _forecast(row, trace, "traincast"), _forecast(row, trace, "roofline")
    except InputError as error:
        return Answer(row=row, refused=f"refused: {str(error).partition(':')[0]}")
    return Answer(row=row, step_s=_seconds(row, ours), log_sd=ours.log_sd, roofline_s=_seconds(row, bound))


def _forecast(row: LanguageRow, trace: Trace, method: str) -> Forecast:
    return forecast(
        trace,
        row.place,
        row.global_batch,
        precision=row.asked_precision,
        optimizer="adamw",
        compiled=row.is_compiled,
        accumulation_steps=row.accumulation_steps,
        strategy=row.sharding.strategy,
        tensor_parallel=row.sharding.tensor_parallel,
        pipeline_parallel=row.sharding.pipeline_parallel,
        method=method,
    )


def _seconds(row: LanguageRow, answer: Forecast) -> float:
    return sum(getattr(answer, part) for part in row.parts) if row.parts else answer.step_s
