"""What every kind of `traincast measure` is asked, and where its answer goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.measurement.environment import Environment
    from traincast.report.document import Document

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A model and how it is trained; None is what was not given."""

    model: str | None = None
    batch_size: int | None = None
    optimizer: str = "sgd"
    precision: str = "fp32"
    device: str = "cpu"
    n_steps: int | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of the model

    @property
    def how(self) -> dict[str, Any]:
        """What every function that measures has under these names."""
        return {"optimizer": self.optimizer, "precision": self.precision, "device": self.device}

    def need_model(self) -> str:
        if self.model is None:
            raise InputError("The model is missing: name one, such as mnist_cnn or file.py:factory.")
        return self.model

    def need_batch_size(self) -> int:
        if self.batch_size is None:
            raise InputError("The batch is missing: give --batch, the samples in one step.")
        return self.batch_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """A store where one was named, the terminal, and files."""

    store: Path | None = None
    as_json: bool = False
    html: Path | None = None
    png: Path | None = None

    def check(self) -> None:
        """Whether the records can go there: told before minutes of measuring. Pages and images see to it themselves."""
        if self.store is not None:
            from traincast.measurement.store_file import check_store

            check_store(self.store)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Where JSON is the answer, what the user's own code prints meanwhile goes to stderr."""
        with contextlib.redirect_stdout(sys.stderr) if self.as_json else contextlib.nullcontext():
            yield

    def show(self, document: Document, data: dict[str, Any]) -> None:
        """The answer, as far as it goes."""
        from traincast.cli.show import show

        show(document, as_json=self.as_json, html=self.html, png=self.png, data=data)

    def keep(
        self, kind: str, values: Mapping[str, Any], environment: Environment, asked: Mapping[str, Any] | None = None
    ) -> None:
        """Every measurement is kept: when it was made is part of what was asked. It has been shown by then."""
        if self.store is None:
            return
        import time

        from traincast.measurement.identity import task_of
        from traincast.measurement.record import Record
        from traincast.measurement.store import Store

        now_s = time.time()
        task = {**task_of(values), **(asked or {}), "asked_s": now_s}
        with Store(self.store) as store:
            store.add(Record(kind=kind, task=task, values=values, environment=environment, created_s=now_s))
        typer.echo(f"Kept in {self.store}", err=True)

    def end(self, *, was_stopped: bool) -> None:
        """Where Ctrl-C ended it, the exit code says so."""
        if was_stopped:
            raise typer.Exit(_INTERRUPTED)
