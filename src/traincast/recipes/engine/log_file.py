"""log.csv: one row per step and per evaluation, in the columns that `traincast converge` reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from traincast.errors import FileFormatError, InputError

COLUMNS = ("epoch", "step", "loss", "acc", "lr", "seconds", "val_loss", "val_acc")
_HEADER = ",".join(COLUMNS) + "\n"


class LogFile:
    """Rows are written whole. A resumed run cuts off what came after its checkpoint, and a torn row with it."""

    def __init__(self, path: Path, n_bytes: int = 0) -> None:
        """`n_bytes` is the length that the checkpoint remembers; 0 begins anew."""
        self.path = path
        try:
            if n_bytes:
                self._cut(n_bytes)
            self._file: IO[bytes] = path.open("ab" if n_bytes else "wb", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error
        if not n_bytes:
            self._write(_HEADER.encode())

    def add(self, rows: list[str]) -> None:
        """Each row without its newline."""
        if rows:
            self._write("".join(f"{row}\n" for row in rows).encode())

    def _write(self, content: bytes) -> None:
        """All of it: where the disk is nearly full, the system takes a part and refuses the rest."""
        try:
            while content:
                content = content[self._file.write(content) :]
        except OSError as error:
            self._file.close()
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"The log '{self.path}' cannot be written: {error.strerror or error}.")

    @property
    def n_bytes(self) -> int:
        return self.path.stat().st_size

    def close(self) -> None:
        self._file.close()

    def _cut(self, n_bytes: int) -> None:
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < n_bytes:
            raise FileFormatError(
                f"'{self.path}' has {found:,} bytes but its checkpoint expects {n_bytes:,}: rows of the log are "
                "lost. Delete the folder to begin again."
            )
        os.truncate(self.path, n_bytes)


def step_row(epoch: int, step: int, *, loss: float, accuracy: float, rate: float, seconds: float) -> str:
    """Nine digits give back every bit of a float32."""
    return f"{epoch},{step},{loss:.9g},{accuracy:.9g},{rate:.9g},{seconds:.4f},,"


def evaluation_row(epoch: int, step: int, *, loss: float, accuracy: float, seconds: float) -> str:
    return f"{epoch},{step},,,,{seconds:.4f},{loss:.9g},{accuracy:.9g}"
