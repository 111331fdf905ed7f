"""The rows of a sweep as they come: a line each on the terminal, and a record where a store was named."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from traincast.errors import StoreError


class SweepRows:
    """A store that fails in the middle is told at the end: the sweep goes on, and is shown."""

    def __init__(self, task: Mapping[str, Any], store: str | Path | None) -> None:
        self._task, self._store, self._asked_s = task, store, time.time()
        self._n, self._n_kept = 0, 0
        self._failure: StoreError | None = None

    def add(self, row: Any) -> None:
        from traincast.api.kept import keep_row
        from traincast.views.sweep import line_of

        self._n += 1
        if sys.stderr.isatty():
            typer.echo(f"  {line_of(row)}", err=True)
        if self._store is None or self._failure is not None:
            return
        try:
            keep_row(self._store, row, {**self._task, "row": self._n, "asked_s": self._asked_s})
        except StoreError as error:
            self._failure = error
        else:
            self._n_kept += 1

    def end(self) -> None:
        if self._store is not None:
            typer.echo(f"Kept {self._n_kept} of {self._n} rows in {self._store}", err=True)
        if self._failure is not None:
            raise self._failure
