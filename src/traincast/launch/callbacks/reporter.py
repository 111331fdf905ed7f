"""What all callbacks do: write a row, and tell now and then when the run will be done."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from traincast.curves.log_question import LogQuestion
from traincast.curves.status.status import status_of
from traincast.curves.status.status_line import line_of
from traincast.errors import InputError, TraincastError
from traincast.launch.callbacks.guard import Tell, print_line
from traincast.launch.callbacks.run_log import RunLog
from traincast.logs import argument_checks
from traincast.logs.follow import LogFollower
from traincast.logs.names import metric_of

_NOTHING_ELSE = LogQuestion()
_COLUMN_OF = {
    ("loss", "train"): "train_loss",
    ("accuracy", "train"): "train_acc",
    ("loss", "validation"): "val_loss",
    ("accuracy", "validation"): "val_acc",
}


def columns_of(metrics: Mapping[str, object]) -> dict[str, float]:
    """What a framework calls eval_loss or val_sparse_categorical_accuracy, by our columns; the rest is left out.

    So is what is no single number, as an accuracy by class or a loss by task: no row has room for it.
    """
    found: dict[str, float] = {}
    for name, value in metrics.items():
        metric = metric_of(name)
        column = metric and _COLUMN_OF.get((metric.metric, metric.split or "train"))
        number = _single_number(value) if column else None
        if column and number is not None:
            found.setdefault(column, number)
    return found


def _single_number(value: Any) -> float | None:
    """Of a number, or of a tensor that holds one."""
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):  # as torch calls a tensor of two
        return None


class Reporter:
    """One run: its log, and a line with the forecast every `every_s` seconds.

    What is `asked` needs no length: the framework says it.
    """

    def __init__(
        self,
        path: str | Path,
        asked: LogQuestion = _NOTHING_ELSE,
        *,
        every_s: float = 30.0,
        tell: Tell | None = None,
    ) -> None:
        """Arguments that cannot be right raise: no training has begun. What the machine lacks is told when one does."""
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"The log should be the path of a file, not {path!r}.")
        if not argument_checks.number("every_s", every_s) >= 0:
            raise InputError(f"every_s, the seconds between two lines, should be at least 0, not {every_s:g}.")
        if not (tell is None or callable(tell)):
            raise InputError(f"tell should be a function that takes a line, not {tell!r}.")
        self._path = Path(path)
        self._asked = asked
        self._every_s = every_s
        self.tell_user = tell or print_line
        self._log: RunLog | None = None
        self._follower = LogFollower(self._path)
        self._total_steps: float | None = None
        self._told_at_s = time.monotonic()
        self._idle_since_s: float | None = None
        self._waited_s, self._n_waits = 0.0, 0

    def begin(self, total_steps: float | None) -> None:
        """Opens the log, to which a resumed run appends."""
        self._log = None
        try:
            self._log = RunLog(self._path)
        except (OSError, ValueError, TraincastError) as error:  # ValueError: a path with a NUL
            self.tell_user(f"traincast: no log is written, as {str(self._path)!r} cannot be: {error}")
        known = total_steps is not None and 0 < total_steps < math.inf
        self._total_steps = total_steps if known else None

    def add(self, step: float, *, epoch: float | None = None, rate: float | None = None, **columns: float) -> None:
        """A row, if there is anything to write; then the line, if it is time for it."""
        if self._log is None or not (columns or rate is not None):
            return
        wait_s = self._waited_s / self._n_waits if self._n_waits else None
        self._waited_s, self._n_waits = 0.0, 0
        row = {"step": step, "epoch": epoch, "learning_rate": rate, "train_data_wait_s": wait_s, **columns}
        try:
            self._log.add({**row, "total_steps": self._total_steps})
        except OSError as error:
            self._log = None
            self.tell_user(f"traincast: '{self._path}' cannot be written ({error.strerror}); no more rows are written.")
            return
        if time.monotonic() - self._told_at_s >= self._every_s:
            self.tell()

    def tell(self) -> None:
        """The line with the forecast, of all that was written."""
        self._told_at_s = time.monotonic()
        if self._log is None:
            return
        try:
            log = self._follower.poll()
            if log is None:
                return
            line = line_of(status_of(log, replace(self._asked, total_steps=self._total_steps)))
        except (OSError, TraincastError) as error:  # as of a metric that is not logged yet: the next line may be told
            line = str(error)
        self.tell_user(f"traincast: {line}")

    def waits(self) -> None:
        """A step is done: until the next begins, the run waits for data."""
        self._idle_since_s = time.monotonic()

    def works(self, n_steps: int = 1) -> None:
        """A step begins, or several at once."""
        if self._idle_since_s is not None:
            self._waited_s += time.monotonic() - self._idle_since_s
            self._n_waits += n_steps
        self._idle_since_s = None

    def pauses(self) -> None:
        """Something else than a step comes: the time until the next one is not that of data."""
        self._idle_since_s = None
