"""One step in several variants: with and without batch norm, by device, by precision, eager and compiled."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, MeasurementError
from traincast.measurement.runnable import Runnable
from traincast.measurement.sweeps.collect import collect
from traincast.trace.settings import PRECISIONS
from traincast.units import show_duration

if TYPE_CHECKING:
    from traincast.measurement.measure import Measurement
    from traincast.measurement.sweeps.learning import EpochScore, Problem

_LEAST_DIFFERENCE = 0.05  # below it, two medians on one machine are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRow:
    """One variant as it was measured, or the reason why it could not be.

    `compile_s` is what was spent once, before steps ran at their speed (only where something is compiled).
    """

    label: str
    measurement: Measurement | None = None
    reason: str = ""
    compile_s: float | None = None
    epochs: tuple[EpochScore, ...] = ()  # what it learned, where that was asked

    @property
    def page_fault_bytes(self) -> float | None:
        """Memory that the kernel had to hand out during a step, because the step before had given it back."""
        faults = None if self.measurement is None else self.measurement.page_faults
        return None if faults is None else faults * mmap.PAGESIZE

    def to_dict(self) -> dict[str, Any]:
        measured = self.measurement
        return {
            "label": self.label,
            "step_s": None if measured is None else measured.step_s,
            "reason": self.reason,
            "compile_s": self.compile_s,
            "page_fault_bytes": self.page_fault_bytes,
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "measured": None if measured is None else measured.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSweep:
    """Variants of one step; the first that was measured is what the others are compared with."""

    what: str
    model: str
    batch_size: int
    rows: tuple[VariantRow, ...]
    was_stopped: bool = False

    @property
    def measured(self) -> tuple[VariantRow, ...]:
        return tuple(row for row in self.rows if row.measurement is not None)

    @property
    def fastest(self) -> VariantRow | None:
        return min(self.measured, key=_step_s, default=None)

    def ratio(self, row: VariantRow) -> float | None:
        """How many times as fast as the first: above 1 is faster."""
        if row.measurement is None or not self.measured:
            return None
        return _step_s(self.measured[0]) / _step_s(row)

    @property
    def verdict(self) -> str:
        """Which is faster and by how much, in a sentence that does not claim more than the spread allows."""
        if not self.measured:
            return "Nothing could be measured."
        first = self.measured[0]
        if len(self.measured) == 1:
            return f"Only {first.label} was measured: {show_duration(_step_s(first))} per step."
        return " ".join(_compared(row, first) for row in self.measured[1:]) + _break_even(self.measured)

    def to_dict(self) -> dict[str, Any]:
        rows = [{**row.to_dict(), "speedup": self.ratio(row)} for row in self.rows]
        return {
            "sweep": self.what,
            "model": self.model,
            "batch_size": self.batch_size,
            "rows": rows,
            "verdict": self.verdict,
            "was_stopped": self.was_stopped,
        }


def sweep_variants(
    what: str,
    runnable: Runnable,
    batch_size: int,
    attempts: dict[str, Callable[[], VariantRow]],
    on_row: Callable[[VariantRow], None] | None = None,
) -> VariantSweep:
    """Each attempt in turn; one that fails becomes a row with the reason."""
    done = collect((_tried(label, attempt) for label, attempt in attempts.items()), on_row)
    return VariantSweep(
        what=what, model=runnable.name, batch_size=batch_size, rows=done.rows, was_stopped=done.was_stopped
    )


def variant(label: str, runnable: Runnable, **settings: Any) -> Callable[[], VariantRow]:
    """Measures a copy, so that a precision or a device does not stay behind in the user's module."""

    def attempt() -> VariantRow:
        from traincast.measurement.measure import measure_step

        return VariantRow(label=label, measurement=measure_step(fresh(runnable), **settings))

    return attempt


def impossible(label: str, reason: str) -> Callable[[], VariantRow]:
    """A variant that this machine cannot run, which is an answer too."""
    return lambda: VariantRow(label=label, reason=reason)


def fresh(runnable: Runnable) -> Runnable:
    return replace(runnable, module=copy.deepcopy(runnable.module))


def sweep_devices(
    runnable: Runnable, *, on_row: Callable[[VariantRow], None] | None = None, **settings: Any
) -> VariantSweep:
    """CPU against GPU; where there is no GPU, the CPU alone."""
    import torch

    asked = str(settings.get("device", "cpu"))
    gpu = asked if asked.startswith("cuda") else "cuda"
    attempts = {"cpu": variant("cpu", runnable, **{**settings, "device": "cpu"})}
    if torch.cuda.is_available():
        attempts[gpu] = variant(gpu, runnable, **{**settings, "device": gpu})
    else:
        attempts[gpu] = impossible(gpu, "there is no GPU that this torch can use, so only the CPU was measured")
    return sweep_variants("device", runnable, settings["batch_size"], attempts, on_row)


def sweep_precisions(
    runnable: Runnable, *, on_row: Callable[[VariantRow], None] | None = None, **settings: Any
) -> VariantSweep:
    """Every precision that the device has; a row says why not for the others."""
    is_cuda = str(settings.get("device", "cpu")).startswith("cuda")
    only_cuda = {
        "tf32": "tf32 is a mode of NVIDIA's matrix units",
        "amp-fp16": "fp16 with loss scaling is for CUDA; a CPU has bf16",
    }
    attempts = {}
    for precision in PRECISIONS:
        if precision in only_cuda and not is_cuda:
            attempts[precision] = impossible(precision, only_cuda[precision])
        else:
            attempts[precision] = variant(precision, runnable, **{**settings, "precision": precision})
    return sweep_variants("precision", runnable, settings["batch_size"], attempts, on_row)


def sweep_norm(
    runnable: Runnable,
    *,
    n_epochs: int = 0,
    problem: Problem | None = None,
    on_row: Callable[[VariantRow], None] | None = None,
    **settings: Any,
) -> VariantSweep:
    """The model as it is, and a copy with every batch norm taken out; with epochs both also learn a problem: digits."""
    from traincast.measurement.sweeps.norm import without_batch_norm

    if n_epochs and settings.get("optimizer") == "none":
        raise InputError("Without an optimizer nothing is learned: name one, or leave the epochs out.")
    bare, n_replaced = without_batch_norm(runnable)
    if not n_replaced:
        raise InputError(f"{runnable.name} has no batch norm to remove, so there is nothing to compare.")
    attempts = {
        label: _learning(variant(label, own, **settings), own, n_epochs, problem, settings)
        for label, own in (("with batch norm", runnable), ("without", bare))
    }
    return sweep_variants("norm", runnable, settings["batch_size"], attempts, on_row)


def _learning(
    attempt: Callable[[], VariantRow],
    runnable: Runnable,
    n_epochs: int,
    problem: Problem | None,
    settings: dict[str, Any],
) -> Callable[[], VariantRow]:
    """The same attempt, after which the variant learns: from the same weights, on the same batches."""
    if not n_epochs:
        return attempt

    def both() -> VariantRow:
        from traincast.measurement.failures import users_code
        from traincast.measurement.sweeps.learning import find_learner, find_problem, learn

        row = attempt()
        learner = find_learner(runnable, problem or find_problem())
        if learner.name != runnable.name:
            return replace(row, reason=learner.remark)
        how = {"batch_size": settings["batch_size"], "device": settings.get("device", "cpu")}
        with users_code(f"Learning {row.label}"):
            scores = tuple(learn(learner, settings.get("optimizer", "sgd"), n_epochs=n_epochs, **how))
        return replace(row, epochs=scores)

    return both


def _tried(label: str, attempt: Callable[[], VariantRow]) -> VariantRow:
    try:
        return attempt()
    except MeasurementError as error:
        return VariantRow(label=label, reason=str(error))


def _step_s(row: VariantRow) -> float:
    assert row.measurement is not None
    return row.measurement.step_s


def _compared(row: VariantRow, first: VariantRow) -> str:
    assert row.measurement is not None
    assert first.measurement is not None
    ratio = _step_s(first) / _step_s(row)
    (low, high), (first_low, first_high) = row.measurement.interval("step_s"), first.measurement.interval("step_s")
    if max(ratio, 1 / ratio) < 1 + _LEAST_DIFFERENCE or (low <= first_high and first_low <= high):
        return (
            f"No clear difference between {row.label} and {first.label}: their step times vary more than they differ."
        )
    if ratio > 1:
        return f"{row.label} is {ratio:.2f} times as fast as {first.label}."
    return f"{row.label} takes {1 / ratio:.2f} times as long as {first.label}."


def _break_even(rows: tuple[VariantRow, ...]) -> str:
    first = rows[0]
    told = []
    for row in rows[1:]:
        if row.compile_s is None:
            continue
        gain_s = _step_s(first) - _step_s(row)
        spent = f" Compiling took {show_duration(row.compile_s)}"
        if gain_s > 0:
            told.append(f"{spent}, which pays off after {row.compile_s / gain_s:,.0f} steps.")
        else:
            told.append(f"{spent}, which never pays off here.")
    return "".join(told)
