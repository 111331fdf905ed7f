"""Published curves, as the folder `curves/` of the public measurements has them."""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.curves.points import Points
from traincast.curves.schedule import LearningRate, Schedule, read_schedule, schedule_of_words
from traincast.errors import InputError

Floats = NDArray[np.float64]
_COLUMNS = ("val_loss", "train_loss", "val_acc")
_FEWEST = {"val_loss": 20, "train_loss": 20, "val_acc": 10}
_STAIRS = re.compile(r"x(?P<factor>0\.\d+) at (?P<unit>epochs?|steps) (?P<places>[\d, and]+)")
_SHARE = re.compile(r"linear decay over last (?P<share>\d+)%")
_LAST_STEPS = re.compile(r"linear decay over last (?P<steps>\d+) steps")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Run:
    """One column of one run. `configuration` is what runs that differ by the seed alone have in common."""

    source: str
    configuration: str
    dataset: str
    name: str
    column: str
    steps: Floats
    values: Floats
    schedule_words: str
    steps_per_epoch: float  # 1 where steps are epochs

    @property
    def is_accuracy(self) -> bool:
        return self.column == "val_acc"

    @property
    def falling(self) -> Floats:
        """Losses; of an accuracy what it lacks to 1."""
        return np.maximum(1.0 - self.values, 1e-4) if self.is_accuracy else self.values

    @property
    def final(self) -> float:
        """The mean of the last fiftieth: a single batch is no result."""
        return float(np.mean(self.values[-max(1, len(self.values) // 50) :]))

    @property
    def end(self) -> float:
        return float(self.steps[-1])

    def until(self, share: float) -> Points | None:
        """What had been logged when this share of the run was over; None where that is too little."""
        seen = self.steps <= share * self.end
        return Points(self.steps[seen], self.falling[seen]) if seen.sum() >= 4 else None

    def schedule(self) -> Schedule | None:
        """As its source tells it; None where it does not."""
        rates = _rates(self.schedule_words, self.end, self.steps_per_epoch)
        return None if rates is None else read_schedule(rates, self.steps, self.end)


def _rates(words: str, end: float, steps_per_epoch: float) -> LearningRate | None:
    if stairs := _STAIRS.search(words):
        factor, rates = float(stairs["factor"]), {0.0: 1.0}
        unit = 1.0 if stairs["unit"] == "steps" else steps_per_epoch
        for number, place in enumerate(re.findall(r"\d+", stairs["places"]), start=1):
            rates[unit * float(place)] = factor**number
        return rates
    if share := _SHARE.search(words):
        return schedule_of_words(f"linear:{int(share['share']) / 100}", end)
    if steps := _LAST_STEPS.search(words):
        return schedule_of_words(f"linear:{float(steps['steps']) / end}", end)
    return None


def read_runs(folder: Path) -> list[Run]:
    """All columns of all curves with enough points."""
    index = folder / "curves" / "index.csv"
    if not index.is_file():
        raise InputError(f"There is no '{index}': give the folder of the public measurements.")
    with index.open(newline="", encoding="utf-8") as stream:
        curves = list(csv.DictReader(stream))
    points: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for file in sorted({curve["file"] for curve in curves}):
        for row in _rows(folder / "curves" / file):
            for column in _COLUMNS:
                if row[column]:
                    where = (_number(row["step"]), _number(row["epoch"]), float(row[column]))
                    points[row["curve_id"], column].append(where)
    return [
        run
        for curve in curves
        for column in _COLUMNS
        if (run := _run(curve, column, points.get((curve["curve_id"], column), []))) is not None
    ]


def _run(curve: dict[str, str], column: str, rows: list[tuple[float, float, float]]) -> Run | None:
    if not rows:
        return None
    table = np.array(rows)
    has_steps = np.isfinite(table[:, 0]).all()
    steps = table[:, 0] if has_steps else table[:, 1]
    has_both = has_steps and table[-1, 1] > 0
    keeps = np.isfinite(steps) & np.isfinite(table[:, 2])
    if keeps.sum() < _FEWEST[column]:
        return None
    order = np.argsort(steps[keeps], kind="stable")
    return Run(
        source=curve["source"],
        configuration=" ".join((curve["model"], curve["dataset"], curve["optimizer"], curve["batch_size"])),
        dataset=curve["dataset"],
        name=curve["curve_id"],
        column=column,
        steps=steps[keeps][order],
        values=table[keeps, 2][order],
        schedule_words=curve["lr_schedule"],
        steps_per_epoch=float(table[-1, 0] / table[-1, 1]) if has_both else 1.0,
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as stream:
        yield from csv.DictReader(stream)


def _number(text: str) -> float:
    return float(text) if text else float("nan")
