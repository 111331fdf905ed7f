"""What all callbacks do: write a row, and tell now and then when the run will be done."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import SupportsFloat

from traincast.convergence.asked import Asked
from traincast.convergence.logs.follow import LogFollower
from traincast.convergence.logs.names import metric_of
from traincast.convergence.status_line import line_of
from traincast.convergence.watching import status_of
from traincast.errors import TraincastError
from traincast.launch.callbacks.run_log import RunLog

Tell = Callable[[str], None]
_NOTHING_ELSE = Asked()
_COLUMN_OF = {
    ("loss", "train"): "train_loss",
    ("accuracy", "train"): "train_acc",
    ("loss", "validation"): "val_loss",
    ("accuracy", "validation"): "val_acc",
}


def columns_of(metrics: Mapping[str, SupportsFloat]) -> dict[str, float]:
    """What a framework calls eval_loss or val_sparse_categorical_accuracy, by our columns; the rest is left out."""
    found: dict[str, float] = {}
    for name, value in metrics.items():
        metric = metric_of(name)
        column = metric and _COLUMN_OF.get((metric.metric, metric.split or "train"))
        if column:
            found.setdefault(column, float(value))
    return found


class Reporter:
    """One run: its log, and a line with the forecast every `every_s` seconds. A run never ends because of it.

    What is `asked` needs no length: the framework says it.
    """

    def __init__(
        self,
        path: str | Path,
        asked: Asked = _NOTHING_ELSE,
        *,
        every_s: float = 30.0,
        tell: Tell | None = None,
    ) -> None:
        self._path = Path(path)
        self._asked = asked
        self._every_s = every_s
        self._tell = tell or _print
        self._log: RunLog | None = None
        self._follower = LogFollower(self._path)
        self._total_steps: float | None = None
        self._told_at_s = time.monotonic()
        self._idle_since_s: float | None = None
        self._waited_s, self._n_waits = 0.0, 0

    def begin(self, total_steps: float | None) -> None:
        """Opens the log, to which a resumed run appends."""
        try:
            self._log = RunLog(self._path)
        except (OSError, TraincastError) as error:
            self._say(f"traincast: no log is written, as '{self._path}' cannot be: {error}")
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
            self._say(f"traincast: '{self._path}' cannot be written ({error.strerror}); no more rows are.")
            self._log = None
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
            if log is not None:
                asked = replace(self._asked, total_steps=self._total_steps)
                self._say(f"traincast: {line_of(status_of(log, asked))}")
        except Exception as error:  # noqa: BLE001  # whatever it is: a forecast is not worth a training run
            self._say(f"traincast: {error}")

    def _say(self, line: str) -> None:
        """Where nobody can be told, the callback falls silent and is off."""
        try:
            self._tell(line)
        except Exception:  # noqa: BLE001  # output on a full disk, or a user's own code: the run goes on
            self._log = None

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


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
