"""Optimizers side by side: what a step costs, and what it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from traincast.errors import MeasurementError
from traincast.measurement.failures import users_code
from traincast.measurement.sweeps.collect import collect
from traincast.measurement.sweeps.learning import (
    LEARNING_RATES,
    EpochScore,
    Learner,
    Problem,
    find_learner,
    find_problem,
    learn,
)
from traincast.measurement.sweeps.variants import fresh
from traincast.units import show_duration, show_percent

if TYPE_CHECKING:
    from traincast.measurement.measured import Measurement
    from traincast.measurement.runnable import Runnable

OPTIMIZERS = tuple(LEARNING_RATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRow:
    """The step with one optimizer, and its epochs where some were asked for; or the reason why there are none."""

    optimizer: str
    learning_rate: float
    measurement: Measurement | None = None
    epochs: tuple[EpochScore, ...] = ()
    reason: str = ""

    @property
    def update_s(self) -> float | None:
        """The optimizer's own part of the step."""
        return None if self.measurement is None else self.measurement.phase_s("optimizer")

    @property
    def last(self) -> EpochScore | None:
        return self.epochs[-1] if self.epochs else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer,
            "learning_rate": self.learning_rate,
            "step_s": None if self.measurement is None else self.measurement.step_s,
            "optimizer_s": self.update_s,
            "reason": self.reason,
            "epochs": [
                {"loss": epoch.loss, "accuracy_fraction": epoch.accuracy_fraction, "epoch_s": epoch.epoch_s}
                for epoch in self.epochs
            ],
            "measured": None if self.measurement is None else self.measurement.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSweep:
    """All optimizers on the same model, weights and batches. `remark` says who learned what."""

    model: str
    batch_size: int
    rows: tuple[OptimizerRow, ...]
    remark: str = ""
    was_stopped: bool = False

    @property
    def measured(self) -> tuple[OptimizerRow, ...]:
        return tuple(row for row in self.rows if row.measurement is not None)

    @property
    def verdict(self) -> str:
        # Forward and backward are the same for all: only the update tells them apart, and its spread is small.
        quick, slow = (choose(self.measured, key=_update_s) for choose in (min, max))
        assert slow.measurement is not None
        parts = [
            f"The update of {slow.optimizer} takes longest ({show_duration(_update_s(slow))} of a step of "
            f"{show_duration(slow.measurement.step_s)}), that of {quick.optimizer} is the shortest "
            f"({show_duration(_update_s(quick))})."
        ]
        learned = [row for row in self.rows if row.last is not None]
        if learned:
            best = max(learned, key=lambda row: (_last(row).accuracy_fraction, -_last(row).loss))
            n_epochs, score = len(best.epochs), _last(best)
            parts.append(
                f"After {n_epochs} epoch{'s' * (n_epochs > 1)} {best.optimizer} is ahead with an accuracy of "
                f"{show_percent(score.accuracy_fraction)} and a loss of {score.loss:.3g}, each at its usual learning "
                "rate and without a search."
            )
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sweep": "optimizers",
            "model": self.model,
            "batch_size": self.batch_size,
            "remark": self.remark,
            "rows": [row.to_dict() for row in self.rows],
            "verdict": self.verdict,
            "was_stopped": self.was_stopped,
        }


def sweep_optimizers(
    runnable: Runnable,
    *,
    batch_size: int,
    n_epochs: int = 0,
    problem: Problem | None = None,
    on_row: Callable[[OptimizerRow], None] | None = None,
    **settings: Any,
) -> OptimizerSweep:
    """`settings` are those of `measure_step`. With epochs, each optimizer also learns a problem: digits."""
    learner = find_learner(runnable, problem or find_problem()) if n_epochs else None
    done = collect(_rows(runnable, learner, n_epochs, {**settings, "batch_size": batch_size}), on_row)
    if done.rows and not any(row.measurement for row in done.rows):
        raise MeasurementError(done.rows[0].reason)
    return OptimizerSweep(
        model=runnable.name,
        batch_size=batch_size,
        rows=done.rows,
        remark="" if learner is None else learner.remark,
        was_stopped=done.was_stopped,
    )


def _rows(
    runnable: Runnable, learner: Learner | None, n_epochs: int, settings: dict[str, Any]
) -> Iterator[OptimizerRow]:
    from traincast.measurement.measure import measure_step

    how = {"batch_size": settings["batch_size"], "device": settings.get("device", "cpu")}
    for name in OPTIMIZERS:
        row = OptimizerRow(optimizer=name, learning_rate=LEARNING_RATES[name])
        try:
            row = replace(row, measurement=measure_step(fresh(runnable), **{**settings, "optimizer": name}))
            if learner is not None:
                with users_code(f"Learning with {name}"):
                    row = replace(row, epochs=tuple(learn(learner, name, n_epochs=n_epochs, **how)))
        except MeasurementError as error:  # one that fails does not cost the others
            row = replace(row, reason=str(error))
        yield row


def _update_s(row: OptimizerRow) -> float:
    assert row.update_s is not None
    return row.update_s


def _last(row: OptimizerRow) -> EpochScore:
    assert row.last is not None
    return row.last
