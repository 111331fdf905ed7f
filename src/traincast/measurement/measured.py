"""What a measurement of a training step found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError
from traincast.measurement.statistics import Summary
from traincast.records.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Seconds of a step and of its phases, with how and where they were measured.

    `launch` is how long the host took until all calls had returned, on a device that works on after that: what a loop
    that never synchronises would take for a step. Elsewhere it is None. `first_step_s` is the first of the warm-up:
    allocation, and compilation where there is any. `page_faults` is the median of a step. `n_repeats` counts fresh
    processes, one after the other. `is_partial`: it was stopped, or failed, before all steps were made.
    """

    model: str
    batch_size: int
    optimizer: str
    precision: str
    device: str
    phases: Mapping[str, Summary]
    step: Summary
    environment: Environment
    compiled: bool = False
    launch: Summary | None = None
    first_step_s: float | None = None
    page_faults: float | None = None
    n_repeats: int = 1
    is_partial: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def n_steps(self) -> int:
        """Steps that were timed, in all processes."""
        return self.step.n

    @property
    def step_s(self) -> float:
        """The median."""
        return self.step.median

    @property
    def samples_per_s(self) -> float:
        return self.batch_size / self.step_s

    def phase_s(self, phase: str) -> float:
        """The median of one phase."""
        return self.phases[phase].median

    def interval(self, name: str) -> tuple[float, float]:
        """(p10, p90) of 'step_s', 'samples_per_s', or a phase ('forward_s')."""
        if name == "samples_per_s":
            return self.batch_size / self.step.p90, self.batch_size / self.step.p10
        known = {"step_s": self.step} | {f"{phase}_s": summary for phase, summary in self.phases.items()}
        if name not in known:
            raise InputError(f"A measurement has no interval of '{name}': choose {', '.join(known)} or samples_per_s.")
        return known[name].p10, known[name].p90

    def to_dict(self) -> dict[str, Any]:
        """What --json prints; `from_dict` reads it again."""
        return {
            "model": self.model,
            "batch_size": self.batch_size,
            "optimizer": self.optimizer,
            "precision": self.precision,
            "device": self.device,
            "compiled": self.compiled,
            "n_steps": self.n_steps,
            "n_repeats": self.n_repeats,
            "step_s": self.step_s,
            "samples_per_s": self.samples_per_s,
            "step": self.step.to_dict(),
            "phases": {name: summary.to_dict() for name, summary in self.phases.items()},
            "launch": None if self.launch is None else self.launch.to_dict(),
            "first_step_s": self.first_step_s,
            "page_faults": self.page_faults,
            "is_partial": self.is_partial,
            "warnings": list(self.warnings),
            "environment": self.environment.to_dict(),
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_duration, show_things

        rows = [
            (name, *(show_duration(seconds) for seconds in (each.median, each.p10, each.p90)))
            for name, each in (("step", self.step), *self.phases.items())
        ]
        title = (
            f"{self.model} on {self.environment.device}, batch {self.batch_size:,}: {show_things(self.n_steps, 'step')}"
        )
        return to_notebook(title, rows, header=("", "median", "p10", "p90"), notes=self.warnings)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        launch = data["launch"]
        plain = ("model", "batch_size", "optimizer", "precision", "device", "compiled", "first_step_s", "page_faults")
        return cls(
            **{name: data[name] for name in (*plain, "n_repeats", "is_partial")},
            step=Summary.from_dict(data["step"]),
            phases={name: Summary.from_dict(summary) for name, summary in data["phases"].items()},
            launch=None if launch is None else Summary.from_dict(launch),
            warnings=tuple(data["warnings"]),
            environment=Environment.from_dict(data["environment"]),
        )
