"""The log that callbacks write: a CSV file to which a resumed run appends."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from traincast.errors import FileFormatError

# `seconds` are since the first start, also over the time in which a run that is resumed was away.
COLUMNS = (
    "step", "epoch", "train_loss", "train_acc", "val_loss", "val_acc", "learning_rate", "train_data_wait_s",
    "total_steps", "seconds",
)  # fmt: skip
_HEADER = ",".join(COLUMNS)
_TAIL_BYTES = 4096


class RunLog:
    """One line an event, each written at once, so that a reader never sees half of one."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._start_s = time.time() - self._seconds_before()

    def add(self, cells: Mapping[str, float | None]) -> None:
        """A row; `seconds` is added to it."""
        row = {**cells, "seconds": round(time.time() - self._start_s, 3)}
        unknown = set(row) - set(COLUMNS)
        assert not unknown, unknown
        self._append(",".join("" if row.get(name) is None else f"{row[name]:.8g}" for name in COLUMNS))

    def _seconds_before(self) -> float:
        """Since the first start, at the time of now: the last row's clock and how long ago it was written."""
        if self._path.exists() and not self._path.is_file():  # a pipe would keep whoever writes to it waiting
            raise FileFormatError(
                f"'{self._path}' is not a file to which rows can be appended: give the log another name."
            )
        if not self._path.exists() or not self._path.stat().st_size:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._append(_HEADER)
            return 0.0
        with self._path.open("rb") as file:
            header = file.readline().decode("utf-8", "replace").strip()
            if header != _HEADER:
                raise FileFormatError(f"'{self._path}' has other columns ({header[:80]}): give the log another name.")
            file.seek(max(file.tell(), self._path.stat().st_size - _TAIL_BYTES))
            tail = file.read()
        away_s = max(time.time() - self._path.stat().st_mtime, 0.0)
        torn = len(tail) - (tail.rfind(b"\n") + 1)
        if torn:  # the line in which the run was killed
            os.truncate(self._path, self._path.stat().st_size - torn)
        rows = [line.split(",") for line in tail.decode("utf-8", "replace").splitlines()]
        clocks = [row[-1] for row in rows if len(row) == len(COLUMNS)]
        return _number(clocks[-1]) + away_s if clocks else 0.0

    def _append(self, line: str) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
