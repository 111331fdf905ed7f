"""Rows of one set beside what was said about them, whatever they are: kernels, steps, whole models."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from lab.accuracy.modern.asking import NO_TRACE, Answer
from traincast.api.forecasts import forecast
from traincast.forecasting.forecast import Forecast
from traincast.kernels.coefficients import Fitted, shipped
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.model_rows import model_block
from traincast.kernels.refit.modern.e2e_files import EXAMPLES, TIMM, ImageRow, example_steps, image_rows
from traincast.kernels.refit.modern.kernel_files import lone_log_sd
from traincast.kernels.refit.modern.kernel_row import KernelRow, askable, block_of, reasons
from traincast.kernels.refit.modern.product_files import CEILINGS
from traincast.trace.file import read_trace
from traincast.trace.graph import Floats
from traincast.trace.trace import Trace
from traincast.validation.baselines import ideal_seconds, summed
from traincast.validation.intervals import log_sd_of

Quantity = Literal["step time", "collective time", "peak memory"]

_LIGER_SETS = {
    "layer_norm": "norms",
    "rms_norm": "norms",
    "fused_add_rms_norm": "norms",
    "megatron_rms_norm": "norms",
    "geglu": "feed-forward layers and heads",
    "swiglu": "feed-forward layers and heads",
    "fused_linear_cross_entropy": "feed-forward layers and heads",
    "cross_entropy": "losses",
    "embedding": "embeddings",
}
_RECOMPUTED = {"none": "nothing recomputed", "full": "all recomputed"}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ScoredRows:
    """What was measured and forecast, and what the simplest rule says, all in the base unit of the quantity."""

    name: str
    file: str
    observed: Floats
    predicted: Floats
    baseline: Floats
    log_sd: Floats | None = None  # None: a forecast without an interval
    quantity: Quantity = "step time"
    rule: str = "roofline"  # that the baseline follows


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """Rows of a file, how many of them could not be asked about, by why, and what was assumed about others."""

    file: str
    n_rows: int
    not_asked: dict[str, int] = field(default_factory=dict)
    assumed: dict[str, int] = field(default_factory=dict)


def of_kernels(file: str, rows: Sequence[KernelRow]) -> tuple[list[ScoredRows], FileCount]:
    """Rows of memory alone are no rows here."""
    timed = [row for row in rows if np.isfinite(row.seconds) or row.memory_bytes is None]
    sets: dict[str, list[KernelRow]] = defaultdict(list)
    for row in askable(timed):
        sets[_kernel_set(row)].append(row)
    found = [_of_block(file, block_of(name, some)) for name, some in sets.items()]
    return found, FileCount(file=file, n_rows=len(timed), not_asked=dict(reasons(timed)))


def _kernel_set(row: KernelRow) -> str:
    stem = row.file.removesuffix(".csv.gz")
    if row.file.startswith("kernels_liger"):
        return f"{stem}: eager {_LIGER_SETS.get(row.kernel, 'rotary positions and activations')}"
    if row.file == CEILINGS:
        return f"{stem}: the fastest product of each GPU, {row.precision}"
    kind = (
        f"attention {row.direction}" if row.kernel == "attention" else "norms" if "norm" in row.kernel else "products"
    )
    return f"{stem}: {kind}, {row.device_name} {row.precision}"


def _of_block(file: str, block: Block, log_sd: Callable[[Block, Fitted], Floats] = lone_log_sd) -> ScoredRows:
    return ScoredRows(
        name=block.name,
        file=file,
        observed=block.observed_s,
        predicted=block.predict(shipped().coefficients),
        log_sd=log_sd(block, shipped()),
        baseline=summed(block, np.maximum(*ideal_seconds(block))),
    )


def of_language(file: str, answers: Sequence[Answer]) -> tuple[list[ScoredRows], FileCount]:
    """A set a source, device and whether layers were recomputed."""
    sets: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if not answer.refused:
            sets[language_set(answer)].append(answer)
    found = [
        ScoredRows(
            name=name,
            file=file,
            observed=np.array([each.row.step_s for each in some]),
            predicted=np.array([each.step_s for each in some]),
            log_sd=np.array([each.log_sd for each in some]),
            baseline=np.array([each.roofline_s for each in some]),
        )
        for name, some in sets.items()
    ]
    assumed = _counted(each for answer in answers if not answer.refused for each in answer.row.assumed)
    not_asked = _counted(answer.refused for answer in answers)
    return found, FileCount(file=file, n_rows=len(answers), not_asked=not_asked, assumed=assumed)


def language_set(answer: Answer) -> str:
    """Its ground, after the colon, is what one constant could be carried over on."""
    row = answer.row
    part = "" if not row.parts else ", forward and backward" if "backward_s" in row.parts else ", forward"
    return f"{row.source}: {row.device_name} {row.asked_precision}, {_RECOMPUTED[row.recompute]}{part}"


def _counted(texts: Iterable[str]) -> dict[str, int]:
    return dict(Counter(text for text in texts if text).most_common())


def of_images(data: Path, traces: Path) -> tuple[list[ScoredRows], FileCount]:
    """Asked as forecasts, because compiling is a setting of those."""
    rows = image_rows(data)
    by_trace: dict[str, list[ImageRow]] = defaultdict(list)
    for row in rows:
        by_trace[row.step.trace].append(row)
    sets: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    n_missing = 0
    for name, some in by_trace.items():
        path = traces / f"{name}.trace"
        if not path.exists():
            n_missing += len(some)
            continue
        trace = read_trace(path)
        for row in some:
            ours, bound = (_image_forecast(row, trace, method) for method in ("traincast", "roofline"))
            sets[row.set_name].append((row.step.observed_s, ours.step_s, ours.log_sd, bound.step_s))
    found = []
    for name, values in sorted(sets.items()):
        observed_s, predicted_s, log_sd, roofline_s = np.array(values).T
        found.append(
            ScoredRows(
                name=f"timm inference, RTX 4090: {name}",
                file=TIMM,
                observed=observed_s,
                predicted=predicted_s,
                log_sd=log_sd,
                baseline=roofline_s,
            )
        )
    return found, FileCount(file=TIMM, n_rows=len(rows), not_asked={NO_TRACE: n_missing} if n_missing else {})


def _image_forecast(row: ImageRow, trace: Trace, method: str) -> Forecast:
    """A roofline does not distinguish layouts."""
    step = row.step
    return forecast(
        trace,
        step.device,
        step.batch_size,
        precision=step.settings.precision,
        layout="nchw" if method == "roofline" else step.layout,
        compiled=row.is_compiled,
        method=method,
    )


def of_examples(data: Path, traces: Path) -> tuple[list[ScoredRows], FileCount]:
    """By device and precision; tf32 is a setting of a whole block, and so is the layout."""
    steps = list(example_steps(data))
    sets = defaultdict(list)
    for step in steps:
        if step.trace.startswith("zoo:") or (traces / f"{step.trace}.trace").exists():
            sets[(step.device, step.tags["precision"])].append(step)
    found = []
    for (device, precision), some in sorted(sets.items()):
        block = model_block("nvidia examples", some, traces)
        name = f"nvidia examples: {device}, {precision}"
        found.append(replace(_of_block(EXAMPLES, block, log_sd_of), name=name))
    n_scored = sum(len(each.observed) for each in found)
    missing = {NO_TRACE: len(steps) - n_scored} if n_scored < len(steps) else {}
    return found, FileCount(file=EXAMPLES, n_rows=len(steps), not_asked=missing)
