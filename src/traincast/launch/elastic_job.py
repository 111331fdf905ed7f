"""A training that a scheduler may start, stop and start again on another number of workers, and its folder."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.report.files import write_file
from traincast.scheduling.jobs_row import Row
from traincast.scheduling.jobs_table import Form, check_names, form_of, read_rows

COLUMNS = ("name", "submit_s", "model", "batch_size", "n_epochs", "n_devices", "max_devices")
_PROGRESS, _STOP = "progress.json", "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJob:
    """A training from scratch on digits. The batch is divided among its workers, so it stays the same batch."""

    name: str
    submit_s: float
    model: str
    batch_size: int
    n_epochs: int
    n_devices: int  # asked for
    max_devices: int  # an elastic policy may give so many

    def __post_init__(self) -> None:
        if not (math.isfinite(self.submit_s) and self.submit_s >= 0):
            raise InputError(
                f"Job '{self.name}' has a submission time of {self.submit_s:g} s: it should be 0 or later."
            )
        if not self.name or set(self.name) & set("/\\\0") or self.name.startswith("."):
            raise InputError(f"A job cannot be named '{self.name}': its folder has the same name.")
        if not 1 <= self.n_devices <= self.max_devices <= self.batch_size:
            raise InputError(
                f"Job '{self.name}' asks for {self.n_devices} devices, at most {self.max_devices}, for a batch of "
                f"{self.batch_size}: these should rise, from 1 on."
            )


def read_elastic_jobs(path: str | Path) -> list[ElasticJob]:
    """The jobs of a CSV file."""
    path = Path(path)
    columns, rows = read_rows(path)
    if not rows:
        raise FileFormatError(f"'{path}' has no jobs; its columns should be {', '.join(COLUMNS)}.")
    form_of(path, columns, [Form(COLUMNS)])
    check_names("name", rows)
    return [_job(row) for row in rows]


def _job(row: Row) -> ElasticJob:
    counts = {name: row.whole(name) for name in COLUMNS[3:]}
    with row.blamed():
        return ElasticJob(name=row.text("name"), submit_s=row.number("submit_s"), model=row.text("model"), **counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is, and how fast it went since its workers met (None: they have made too few steps)."""

    step: int
    n_steps: int
    n_workers: int
    step_s: float | None

    @property
    def fraction(self) -> float:
        """Part of the steps that is done. One is left until the job has ended: evaluation and checkpoint come last."""
        return min(self.step, self.n_steps - 1) / self.n_steps


class JobFolder:
    """The run's folder of a recipe, and beside it what scheduler and workers tell each other.

    Both see the same folder; on several machines it is on a shared disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_path = path / "run"

    @property
    def is_finished(self) -> bool:
        return self.finished_s() is not None

    def finished_s(self) -> float | None:
        """When its result was written, by the clock; None: it was not."""
        return _changed_s(self.run_path / "result.json")

    def ask_to_stop(self, attempt: int) -> None:
        """After the step that it is at, with a checkpoint."""
        write_file(self.path / f"{_STOP}-{attempt}", "")

    def is_asked_to_stop(self, attempt: int) -> bool:
        return (self.path / f"{_STOP}-{attempt}").exists()

    def meeting_place(self, attempt: int) -> Path:
        """The file through which the workers of one start find each other."""
        return self.path / f"meet-{attempt}"

    def forget(self, attempt: int) -> None:
        """What the workers of a start needed, once they are gone."""
        for path in (self.meeting_place(attempt), self.path / f"{_STOP}-{attempt}"):
            with contextlib.suppress(OSError):
                path.unlink()

    def tell(self, progress: Progress) -> None:
        content = {name: getattr(progress, name) for name in Progress.__dataclass_fields__}
        write_file(self.path / _PROGRESS, json.dumps(content))

    def told_s(self) -> float | None:
        """When it last was, by the clock."""
        return _changed_s(self.path / _PROGRESS)

    def progress(self) -> Progress | None:
        """As last told."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            content: dict[str, Any] = json.loads((self.path / _PROGRESS).read_text(encoding="utf-8"))
            return Progress(**content)
        return None


def _changed_s(path: Path) -> float | None:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return None
