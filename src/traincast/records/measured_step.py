"""One measured step as an explanation needs it, however it was measured: as much of it as is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traincast.errors import FileFormatError
from traincast.records.identity import EPOCH, PROCESSES, kind_of
from traincast.records.profiled_run import WORK_PHASES, ProfiledRun, Work
from traincast.records.record import Record

# What others call the same part of a step.
_PHASES = {"data": "input", "input_wait": "input", "exposed_communication": "communication"}
_KNOWN = ("input", "copy", *WORK_PHASES, "communication", "other")


_MOST_S = 1e12  # a step of thirty thousand years; a file may hold whole numbers that no float holds


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
    """What a record of that source holds: a measurement of ours, a row of a table, or a profile.

    Of an epoch it is the mean batch: a loader that delivers in bursts has a median wait of zero.
    """
    values, kind = record.values, kind_of(record.values)
    usual = "mean" if kind == EPOCH else "median"
    step_s = _seconds(_summary(values.get("batch"), usual) if kind == EPOCH else values.get("step_s"))
    if step_s is None:
        raise _no_step(record, record.error or "it has no 'step_s'")
    phases, notes = _phases(values, usual), []
    if kind == EPOCH:
        notes.append("This is the mean batch of an epoch, including the time spent waiting for data.")
    elif kind == PROCESSES:
        phases = _apart(phases, _seconds(values.get("exposed_s")) or 0.0)
    return MeasuredStep(
        source=str(values.get("source", source)),
        step_s=step_s,
        phases=phases,
        work=_work(record),
        notes=(*notes, *_texts(record, "notes"), *_texts(record, "warnings")),
    )


def _apart(phases: dict[str, float], exposed_s: float) -> dict[str, float]:
    """Communication that shows is timed as part of backward, which waits for it."""
    shown_s = min(exposed_s, phases.get("backward", 0.0))
    return {**phases, "backward": phases.get("backward", 0.0) - shown_s, "communication": shown_s}


def _work(record: Record) -> Work | None:
    """Seconds by phase and kind of work, where somebody looked at kinds."""
    given = record.values.get("work_s")
    if given is None:
        return None
    is_table = isinstance(given, Mapping) and all(
        isinstance(kinds, Mapping) and all(_seconds(value) is not None for value in kinds.values())
        for kinds in given.values()
    )
    if not is_table:
        raise _no_step(record, "its 'work_s' is not a table of seconds by phase and kind of work")
    return given


def _texts(record: Record, name: str) -> tuple[str, ...]:
    given = record.values.get(name, ())
    if not isinstance(given, list | tuple):
        raise _no_step(record, f"its '{name}' is not a list of sentences")
    return tuple(str(text) for text in given)


def _no_step(record: Record, why: str) -> FileFormatError:
    return FileFormatError(f"The record '{record.kind}' of {_named(record)} is not a measured step: {why}.")


def _phases(values: Mapping[str, Any], usual: str) -> dict[str, float]:
    """Under 'phases_s', as summaries under 'phases', or as columns such as 'forward_s'."""
    given = values.get("phases_s", values.get("phases"))
    if not isinstance(given, Mapping):
        given = {key.removesuffix("_s"): value for key, value in values.items() if key.endswith("_s")}
    found: dict[str, float] = {}
    for name, value in given.items():
        phase = _PHASES.get(name, name)
        seconds = _seconds(_summary(value, usual))
        if phase in _KNOWN and seconds is not None:
            found[phase] = seconds
    return {phase: found[phase] for phase in _KNOWN if phase in found}


def _summary(value: Any, usual: str) -> Any:
    return value.get(usual) if isinstance(value, Mapping) else value


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _MOST_S else None


def _named(record: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in record.task.items()) or "nothing"
