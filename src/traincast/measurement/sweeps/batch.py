"""Batch sizes, each four times the one before, until memory ends: where does a larger batch stop paying?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from traincast.measurement.sweeps.collect import WITHIN_FRACTION, collect, first_within
from traincast.units import show_duration

if TYPE_CHECKING:
    from traincast.measurement.measured import Measurement

FACTOR = 4
Status = Literal["measured", "out of memory", "too slow", "failed"]
_MOST_FAILURES = 2  # a batch of 1 fails under batch norm, and larger ones do not


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """One batch size: its steps, or how it ended. `peak_memory_bytes` is that of the whole process or of the GPU.

    Of a size that was too slow there is one cold step, `first_step_s`.
    """

    batch_size: int
    status: Status
    measurement: Measurement | None = None
    first_step_s: float | None = None
    peak_memory_bytes: int | None = None
    message: str = ""

    @property
    def step_s(self) -> float | None:
        return self.first_step_s if self.measurement is None else self.measurement.step_s

    @property
    def samples_per_s(self) -> float | None:
        return None if self.step_s is None else self.batch_size / self.step_s

    @property
    def step_per_sample_s(self) -> float | None:
        return None if self.step_s is None else self.step_s / self.batch_size

    def to_dict(self) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size,
            "status": self.status,
            "step_s": self.step_s,
            "samples_per_s": self.samples_per_s,
            "step_per_sample_s": self.step_per_sample_s,
            "peak_memory_bytes": self.peak_memory_bytes,
            "message": self.message,
            "measured": None if self.measurement is None else self.measurement.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSweep:
    """All sizes that were tried, ascending, and why no larger one was."""

    model: str
    rows: tuple[BatchRow, ...]
    max_step_s: float
    was_stopped: bool = False

    @property
    def measured(self) -> tuple[BatchRow, ...]:
        return tuple(row for row in self.rows if row.measurement is not None)

    @property
    def recommended(self) -> BatchRow | None:
        """The smallest size that is nearly as quick as the quickest."""
        return first_within(self.measured, _speed) if self.measured else None

    @property
    def ended(self) -> str:
        """Why the sweep ended where it did."""
        last = self.rows[-1]
        if last.status == "out of memory":
            return f"Out of memory at {last.batch_size:,}."
        if last.status == "too slow":
            took, most = show_duration(last.step_s or 0.0), show_duration(self.max_step_s)
            return f"Stopped at {last.batch_size:,}, where one step took {took}: longer than the limit of {most}."
        if last.status == "failed":
            return f"Stopped at {last.batch_size:,}: {last.message}"
        return f"Stopped by Ctrl-C after {last.batch_size:,}."

    @property
    def verdict(self) -> str:
        best = self.recommended
        if best is None:
            return f"No batch size could be measured. {self.ended}"
        quickest = max(self.measured, key=_speed)
        if best is self.measured[-1] and len(self.measured) > 1:
            return (
                f"The largest batch that ran, {best.batch_size:,}, is the quickest: {_speed(best):,.0f} samples/s, "
                f"and still rising. {self.ended}"
            )
        within = ""
        if best is not quickest:
            most = f"{_speed(quickest):,.0f} at {quickest.batch_size:,}"
            within = f", within {100 * WITHIN_FRACTION:.0f} % of the best ({most})"
        return f"A batch of {best.batch_size:,} is enough: {_speed(best):,.0f} samples/s{within}. {self.ended}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "sweep": "batch",
            "model": self.model,
            "rows": [row.to_dict() for row in self.rows],
            "recommended_batch_size": None if self.recommended is None else self.recommended.batch_size,
            "verdict": self.verdict,
            "was_stopped": self.was_stopped,
        }


def sweep_batches(
    model: str,
    attempt: Callable[[int], BatchRow],
    *,
    first: int,
    max_step_s: float,
    on_row: Callable[[BatchRow], None] | None = None,
) -> BatchSweep:
    """`attempt` measures one size, whatever becomes of it; the first size that ends badly is the last."""
    done = collect(_rows(attempt, first), on_row)
    return BatchSweep(model=model, rows=done.rows, max_step_s=max_step_s, was_stopped=done.was_stopped)


def _rows(attempt: Callable[[int], BatchRow], first: int) -> Iterator[BatchRow]:
    batch_size, n_measured, n_failures = first, 0, 0
    while True:
        row = attempt(batch_size)
        yield row
        n_measured += row.status == "measured"
        n_failures += row.status == "failed"
        may_go_on = row.status == "measured" or (not n_measured and n_failures < _MOST_FAILURES)
        if not may_go_on or row.status in ("out of memory", "too slow"):
            return
        batch_size *= FACTOR


def _speed(row: BatchRow) -> float:
    assert row.samples_per_s is not None
    return row.samples_per_s
