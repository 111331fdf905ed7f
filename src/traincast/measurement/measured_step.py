"""One measured step as an explanation needs it, however it was measured: as much of it as is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traincast.errors import FileFormatError
from traincast.measurement.profiled_run import WORK_PHASES, ProfiledRun, Work
from traincast.measurement.record import Record

# What others call the same part of a step.
_PHASES = {"data": "input", "input_wait": "input", "exposed_communication": "communication"}
_KNOWN = ("input", "copy", *WORK_PHASES, "communication", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """Seconds of one step. `phases` may be empty; `work` is None where nobody looked at kinds of ops."""

    source: str
    step_s: float
    phases: Mapping[str, float] = field(default_factory=dict)
    work: Work | None = None
    notes: tuple[str, ...] = ()

    @property
    def has_loss(self) -> bool:
        """Whether the loss was told apart from the forward pass."""
        return "loss" in self.phases

    def phase_s(self, phase: str) -> float:
        return self.phases.get(phase, 0.0)

    @property
    def host_s(self) -> float | None:
        """What is left of the step beside work, input, copies and communication; None without a breakdown."""
        if self.work is None:
            return None
        work_s = sum(seconds for kinds in self.work.values() for seconds in kinds.values())
        told_s = work_s + self.phase_s("input") + self.phase_s("copy") + self.phase_s("communication")
        return max(self.step_s - told_s, 0.0)


def step_of_profile(run: ProfiledRun) -> MeasuredStep:
    """What a profiler saw."""
    return MeasuredStep(source=run.source, step_s=run.step_s, phases=run.phases, work=run.work, notes=run.notes)


def step_of_record(record: Record, *, source: str) -> MeasuredStep:
    """What a record of that source holds: a measurement of ours, a row of a table, or a profile."""
    values = record.values
    step_s = _seconds(values.get("step_s"))
    if step_s is None:
        why = record.error or "it has no 'step_s'"
        raise FileFormatError(f"The record '{record.kind}' of {_named(record)} is not a measured step: {why}.")
    return MeasuredStep(
        source=str(values.get("source", source)),
        step_s=step_s,
        phases=_phases(values),
        work=values.get("work_s"),
        notes=tuple(values.get("notes", ())),
    )


def _phases(values: Mapping[str, Any]) -> dict[str, float]:
    """Under 'phases_s', as summaries with a median under 'phases', or as columns such as 'forward_s'."""
    given = values.get("phases_s", values.get("phases"))
    if not isinstance(given, Mapping):
        given = {key.removesuffix("_s"): value for key, value in values.items() if key.endswith("_s")}
    found: dict[str, float] = {}
    for name, value in given.items():
        phase = _PHASES.get(name, name)
        seconds = _seconds(value.get("median") if isinstance(value, Mapping) else value)
        if phase in _KNOWN and seconds is not None:
            found[phase] = seconds
    return {phase: found[phase] for phase in _KNOWN if phase in found}


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value >= 0 else None


def _named(record: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in record.task.items()) or "nothing"
