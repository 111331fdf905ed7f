"""What every format is turned into first: columns of numbers in the order in which they were written."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from traincast.logs import gate
from traincast.logs.log import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a log says about its run besides the rows; None where it does not."""

    steps_per_epoch: float | None = None
    total_steps: int | None = None
    n_epochs: float | None = None
    batch_size: int | None = None

    def or_else(self, other: Facts) -> Facts:
        """These facts, and those of `other` where there are none."""
        names = ("steps_per_epoch", "total_steps", "n_epochs", "batch_size")
        return replace(self, **{name: getattr(other, name) for name in names if getattr(self, name) is None})


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Sheet:
    """Rows that one counter of steps numbers.

    In a column NaN is an empty cell and infinity a number that was logged but is not finite. `split` is what the whole
    sheet is of ("validation"), where something else than the names of its columns says so.
    """

    columns: Mapping[str, FloatArray]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns of text: phase, run
    split: str | None = None
    resumed: tuple[int, ...] = ()  # rows before which the log was begun anew
    unread: tuple[str, ...] = ()  # columns that are no number we use

    @property
    def n_rows(self) -> int:
        for column in self.columns.values():
            return len(column)
        return 0

    def rows(self, is_chosen: NDArray[np.bool_], *, split: str | None = None) -> Sheet:
        """Some of the rows."""
        positions = np.concatenate(([0], np.cumsum(is_chosen)))
        return replace(
            self,
            columns={name: column[is_chosen] for name, column in self.columns.items()},
            words={name: tuple(np.array(texts, object)[is_chosen]) for name, texts in self.words.items()},
            split=split or self.split,
            resumed=tuple(int(positions[row]) for row in self.resumed),
        )

    def without(self, *names: str | None) -> Sheet:
        """All columns but some."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name not in names})


class RowCollector:
    """Collects rows that do not all have the same columns; only what is there takes memory."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._values: dict[str, array[float]] = {}
        self._words: dict[str, dict[int, str]] = {}
        self._resumed: list[int] = []
        self.n_rows = 0

    def add(self, numbers: Mapping[str, float], words: Mapping[str, str] | None = None) -> None:
        """One row. A number that is not finite is kept as infinity."""
        for name, value in numbers.items():
            if name not in self._rows:
                self._rows[name], self._values[name] = array("q"), array("d")
            self._rows[name].append(self.n_rows)
            self._values[name].append(value if -np.inf < value < np.inf else np.inf)
        for name, word in (words or {}).items():
            self._words.setdefault(name, {})[self.n_rows] = word
        self.n_rows += 1

    def resume(self) -> None:
        """What follows is of a run that was started again."""
        self._resumed.append(self.n_rows)

    def sheet(self) -> Sheet:
        columns: dict[str, FloatArray] = {}
        for name, rows in self._rows.items():
            column = np.full(self.n_rows, np.nan)
            column[np.array(rows, np.int64)] = np.array(self._values[name], np.float64)
            columns[name] = gate.numbers(column)
        words = {name: tuple(texts.get(row, "") for row in range(self.n_rows)) for name, texts in self._words.items()}
        return Sheet(columns=columns, words=words, resumed=tuple(self._resumed))
