"""Predicted against measured: a step by phase and by kind of work, and where the difference is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from traincast.forecasting.by_kind import KindTime, WorkByKind, by_kind
from traincast.forecasting.forecast import Forecast
from traincast.planning.advice import Advice
from traincast.records.measured_step import MeasuredStep
from traincast.trace.kinds import OpKind

HOST, INPUT, COPY_IN, COMMUNICATION = "host", "input", "copy to device", "communication"
BUBBLE = "pipeline bubble"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """One phase or kind of work of a step. `measured_s` is None where nobody measured it."""

    name: str
    predicted_s: float
    measured_s: float | None = None
    work: KindTime | None = None  # of a kind of ops: what there is to do

    @property
    def difference_s(self) -> float | None:
        """Above 0 where the run was slower."""
        return None if self.measured_s is None else self.measured_s - self.predicted_s

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return self.measured_s / self.predicted_s if self.measured_s is not None and self.predicted_s else None

    def _rate(self, amount: float) -> float | None:
        seconds = self.predicted_s if self.measured_s is None else self.measured_s
        return amount / seconds if amount and seconds else None

    @property
    def flop_per_s(self) -> float | None:
        """Achieved in the run; without one, expected."""
        return None if self.work is None else self._rate(self.work.n_flop)

    @property
    def bytes_per_s(self) -> float | None:
        """The least that had to be moved, over the time that was taken."""
        return None if self.work is None else self._rate(self.work.n_bytes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Gap:
    """A forecast beside a measured step; without one, the forecast alone. Kinds are sorted by their difference."""

    forecast: Forecast
    measured: MeasuredStep | None
    phases: tuple[GapRow, ...]  # they add up to the steps; 'step' itself is not one of them
    kinds: tuple[GapRow, ...]  # so do these; no measured side without a profile

    @property
    def step(self) -> GapRow:
        measured_s = None if self.measured is None else self.measured.step_s
        return GapRow(name="step", predicted_s=self.forecast.step_s, measured_s=measured_s)

    @property
    def has_kinds(self) -> bool:
        """Whether the run was looked at by kind of op."""
        return self.measured is not None and self.measured.work is not None

    @cached_property
    def advice(self) -> Advice:
        """The predicted step op by op, its roofline, and what would help."""
        return Advice(self.forecast)

    def _repr_html_(self) -> str:
        """The step by phase and by kind of work, and what would help."""
        from traincast.report.notebook import to_notebook
        from traincast.units import show_duration

        rows = [
            (
                row.name,
                show_duration(row.predicted_s),
                None if row.measured_s is None else show_duration(row.measured_s),
            )
            for row in (*self.phases, self.step, *self.kinds)
        ]
        table = to_notebook(f"A step of {self.forecast.model}", rows, header=("", "predicted", "measured"))
        return f"{table}{self.advice._repr_html_()}"

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        from traincast.planning.bound import measured_bound
        from traincast.planning.verdict import verdict

        bound = measured_bound(self)
        return {
            "model": self.forecast.model,
            "on": self.forecast.place,
            "batch_size": self.forecast.batch_size,
            "precision": self.forecast.question.settings.precision,
            "optimizer": self.forecast.question.settings.optimizer,
            "source": None if self.measured is None else self.measured.source,
            "step": _row_dict(self.step),
            "step_interval_s": self.forecast.interval("step_s"),
            "phases": [_row_dict(row) for row in self.phases],
            "kinds": [_row_dict(row) for row in self.kinds],
            "bound_s": self.forecast.bound_s,
            **self.advice.to_dict(),
            "predicted_bound_by": self.forecast.bound_by,
            "measured_bound_by": None if bound is None else bound.by,
            "verdict": verdict(self),
            "notes": () if self.measured is None else self.measured.notes,
            "warnings": self.forecast.warnings,
        }


def explain_gap(forecast: Forecast, predicted: WorkByKind, measured: MeasuredStep | None) -> Gap:
    """The same step on both sides, cut in the same pieces."""
    kinds = sorted(_kinds(forecast, predicted, measured), key=_largest_first)
    return Gap(forecast=forecast, measured=measured, phases=tuple(_phases(forecast, measured)), kinds=tuple(kinds))


def _phases(forecast: Forecast, measured: MeasuredStep | None) -> Iterable[GapRow]:
    """Where the loss was not told apart from the forward pass, it is not told apart in the forecast either."""
    predicted = {
        INPUT: forecast.input_wait_s,
        COPY_IN: 0.0,
        "forward": forecast.forward_s,
        "loss": forecast.loss_s,
        "backward": forecast.backward_s,
        "optimizer": forecast.optimizer_s,
        COMMUNICATION: forecast.exposed_communication_s,
        "other": 0.0,
    }
    if measured is None or not measured.phases:
        return [GapRow(name=name, predicted_s=seconds) for name, seconds in predicted.items() if seconds]
    if not measured.has_loss:
        predicted["forward"] += predicted.pop("loss")
    took = {COPY_IN if phase == "copy" else phase: seconds for phase, seconds in measured.phases.items()}
    shown = {"forward": "forward", "loss": "loss"} if measured.has_loss else {"forward": "forward and loss"}
    return [
        GapRow(name=shown.get(name, name), predicted_s=seconds, measured_s=took.get(name, 0.0))
        for name, seconds in predicted.items()
        if seconds or took.get(name)
    ]


def _kinds(forecast: Forecast, predicted: WorkByKind, measured: MeasuredStep | None) -> Iterable[GapRow]:
    work = by_kind(predicted)
    took = None if measured is None or measured.work is None else _measured_kinds(measured.work)
    work_s = sum(time.seconds for time in work.values())
    outside_s = forecast.exposed_communication_s + forecast.input_wait_s + forecast.bubble_s
    beside = {
        HOST: max(forecast.step_s - work_s - outside_s, 0.0),
        BUBBLE: forecast.bubble_s,
        INPUT: forecast.input_wait_s,
        COPY_IN: 0.0,
        COMMUNICATION: forecast.exposed_communication_s,
    }
    took_beside: dict[str, float | None] = dict.fromkeys(beside)
    if took is not None and measured is not None:
        took_beside = {
            HOST: measured.host_s,
            BUBBLE: 0.0,  # nothing that we read tells it from waiting for the host
            INPUT: measured.phase_s("input"),
            COPY_IN: measured.phase_s("copy"),
            COMMUNICATION: measured.phase_s("communication"),
        }
    for kind in dict.fromkeys((*work, *(took or {}))):
        time = work.get(kind, KindTime())
        measured_s = None if took is None else took.get(kind, 0.0)
        if time.seconds or measured_s:
            yield GapRow(name=kind, predicted_s=time.seconds, measured_s=measured_s, work=time)
    for name, seconds in beside.items():
        if seconds or took_beside[name]:
            yield GapRow(name=name, predicted_s=seconds, measured_s=took_beside[name])


def _measured_kinds(work: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Without phases; all ops of an update are 'optimizer', as in the forecast."""
    found: dict[str, float] = {}
    for phase, kinds in work.items():
        for kind, seconds in kinds.items():
            name = OpKind.OPTIMIZER.value if phase == "optimizer" else kind
            found[name] = found.get(name, 0.0) + seconds
    return found


def _largest_first(row: GapRow) -> tuple[float, str]:
    size = row.predicted_s if row.difference_s is None else abs(row.difference_s)
    return -size, row.name


def _row_dict(row: GapRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "predicted_s": row.predicted_s,
        "measured_s": row.measured_s,
        "difference_s": row.difference_s,
        "ratio": row.ratio,
        "flop_per_s": row.flop_per_s,
        "bytes_per_s": row.bytes_per_s,
    }
