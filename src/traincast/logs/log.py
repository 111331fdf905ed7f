"""A training log as the rest of the room sees it: series over one global step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError, close_names
from traincast.logs import argument_checks
from traincast.logs.meant import is_of_kind, names_meant
from traincast.logs.names import is_rising, metric_of

FloatArray = NDArray[np.float64]
SPLITS = ("train", "validation", "test")


def check_split(split: str) -> None:
    if split not in SPLITS:
        raise InputError(f"There is no split '{split}': choose {', '.join(SPLITS)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The rows at the end of a series that are no finite numbers."""

    first_step: float
    last_step: float
    n_rows: int
    last_s: float | None = None  # by the clock of the series


@dataclass(frozen=True, eq=False, slots=True)
class Series:
    """One metric over time.

    `steps` are completed optimizer steps, strictly increasing; where a log counts epochs only, they are epochs.
    `seconds` are since the start of the log, never decreasing, NaN where unknown: pauses and restarts stay in them.
    `kind` is "point" (one batch or one evaluation), "epoch_mean" (counts at the epoch's end) or "running_mean" (a mean
    since the start of the epoch, of which only the last row of each epoch is kept). Values are finite; `divergence` is
    what comes after the last of them.
    """

    name: str
    metric: str
    split: str
    steps: FloatArray
    values: FloatArray
    epochs: FloatArray | None = None
    seconds: FloatArray | None = None
    kind: str = "point"
    n_not_finite: int = 0
    first_not_finite_step: float | None = None
    in_percent: bool = False  # as it is written; its values are fractions
    divergence: Divergence | None = None

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_rising(self) -> bool:
        """Whether more of it is better."""
        return is_rising(self.metric)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "metric": self.metric,
            "split": self.split,
            "kind": self.kind,
            "steps": self.steps.tolist(),
            "values": self.values.tolist(),
            "epochs": _listed(self.epochs),
            "seconds": _listed(self.seconds),
            "n_not_finite": self.n_not_finite,
            "first_not_finite_step": self.first_not_finite_step,
            "in_percent": self.in_percent,
            "divergence": None if self.divergence is None else asdict(self.divergence),
        }


@dataclass(frozen=True, eq=False, slots=True)
class Log:
    """What a run has written so far.

    `restarts` are the global steps at which the log went back or was begun anew. `remarks` say, one sentence each,
    what was repaired, taken for granted or left out. `unread` are columns of which nobody said that they are metrics.
    """

    path: str
    format: str
    series: tuple[Series, ...]
    learning_rate: Series | None = None
    data_wait: Series | None = None  # seconds of each step in which it waits for data
    steps_per_epoch: float | None = None
    total_steps: int | None = None
    n_epochs: float | None = None
    batch_size: int | None = None
    restarts: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def find(self, metric: str, split: str | None = None) -> Series:
        """The series of a metric ("loss"), or with a name as the log writes it ("val_loss"); the longest of several.

        A part of a name will do where no other has it. Without a split, training comes before validation, and
        validation before test.
        """
        if split is not None:
            check_split(split)
        wanted = argument_checks.word("A metric", metric).strip()
        found = [one for one in self.matching(wanted) if split in (None, one.split)]
        if not found:
            raise InputError(f"'{self.path}' has no {_told(wanted, split)}: {self._listing()}.{self._near(wanted)}")
        return min(found, key=lambda one: (SPLITS.index(one.split), -len(one)))

    def matching(self, metric: str) -> list[Series]:
        """All series of one metric, whatever their split; none where it is not there."""
        if found := [one for one in self.series if is_of_kind(metric, one.metric, one.name)]:
            return found
        if (kind := metric_of(metric)) is not None:  # 'acc' is the accuracy, 'val_acc' that of validation
            found = [one for one in self.series if one.metric == kind.metric and kind.split in (None, one.split)]
        if not found:
            named = names_meant(metric, [one.name for one in self.series])
            found = [one for one in self.series if one.name in named]
        if len({one.metric for one in found}) > 1:
            shown = ", ".join(one.name for one in found)
            raise InputError(f"'{self.path}' has several series '{metric.strip()}': choose one of {shown}.")
        return found

    @property
    def last_step(self) -> float:
        """Of its last row, which may have a learning rate alone, or values that are not finite."""
        beside = () if self.learning_rate is None else (self.learning_rate,)
        ends = [one.divergence.last_step for one in self.series if one.divergence is not None]
        return max(*ends, *(float(one.steps[-1]) for one in (*self.series, *beside)), 0.0)

    @property
    def counts_epochs(self) -> bool:
        """Whether its steps are epochs, because it has no other counter."""
        return self.steps_per_epoch is None and all(
            one.epochs is not None and np.array_equal(one.steps, one.epochs) for one in self.series
        )

    @property
    def unit(self) -> str:
        """What one of its steps is called."""
        return "epoch" if self.counts_epochs else "step"

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        rows = [
            (one.name, one.split, one.metric, f"{len(one):,}", f"{one.steps[-1]:,.6g}", f"{one.values[-1]:.4g}")
            for one in self.series
            if len(one)
        ]
        header = ("series", "split", "metric", "points", f"last {self.unit}", "last value")
        return to_notebook(f"{self.path} ({self.format})", rows, header=header, notes=self.remarks)

    def _listing(self) -> str:
        """What there is: 'it has loss (train), accuracy (validation)'."""
        known = ", ".join(f"{one.metric} ({one.split})" for one in self.series) or "none"
        others = f", and columns that are not known metrics: {', '.join(self.unread)}" if self.unread else ""
        return f"it has {known}{others}"

    def _near(self, wanted: str) -> str:
        """What is there by this very name is listed already."""
        known = [name for one in self.series for name in (one.metric, one.name)]
        return close_names(wanted, [name for name in known if name.lower() != wanted.lower()])

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "format": self.format,
            "series": [one.to_dict() for one in self.series],
            "learning_rate": None if self.learning_rate is None else self.learning_rate.to_dict(),
            "data_wait": None if self.data_wait is None else self.data_wait.to_dict(),
            "steps_per_epoch": self.steps_per_epoch,
            "total_steps": self.total_steps,
            "n_epochs": self.n_epochs,
            "batch_size": self.batch_size,
            "restarts": list(self.restarts),
            "remarks": list(self.remarks),
            "unread": list(self.unread),
        }


def _told(metric: str, split: str | None) -> str:
    return f"series '{metric}'" if split is None else f"{split} series '{metric}'"


def _listed(values: FloatArray | None) -> list[float | None] | None:
    """JSON knows no NaN."""
    return None if values is None else [None if value != value else value for value in values.tolist()]
