"""Logs of training runs, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.convergence.logs.log import Log

Progress = Callable[[float], None]  # the fraction that is read


def read_log(
    path: str | Path,
    *,
    format: str | None = None,
    pattern: str | None = None,
    columns: Mapping[str, str] | None = None,
    steps_per_epoch: float | None = None,
    run: str | None = None,
    metric: str | None = None,
    on_progress: Progress | None = None,
) -> Log:
    """What a run has logged so far: series over one global step, and remarks about what was repaired or left out.

    The format is recognised (CSV, JSON lines or document, Trainer state, TensorBoard, W&B, MLPerf, plain text; gzipped
    too), or given: "csv", "jsonl", "json", "trainer_state", "tensorboard", "wandb", "mlperf", "text". `pattern` is a
    regular expression with named groups (step, epoch, loss, val_accuracy, seconds, lr) for plain text. `columns` maps
    what is meant to the name of a column: {"step": "it", "val_loss": "l2"}. A file with several runs needs `run`.
    `metric` is the name of a column, or a part of it, that is read as a metric though we do not know it.
    """
    from traincast.convergence import given
    from traincast.convergence.logs.reading import Reading, read_runs

    words = {"A format": format, "A pattern": pattern, "A run": run, "A metric": metric}
    for what, value in words.items():
        if value is not None:
            given.word(what, value)
    given.path("A log", path)
    _check(columns, steps_per_epoch)
    reading = Reading(format=format, pattern=pattern, columns=columns, steps_per_epoch=steps_per_epoch, metric=metric)
    return read_runs(path, reading, on_progress).chosen(run)


def read_logs(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    steps_per_epoch: float | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Log]:
    """The logs of a file with several runs, told apart by a column such as 'run' or 'curve_id'.

    `columns` may say which one, or which ones together: {"run": "n_gpus,batch"}. A file of one run has it under "".
    """
    from traincast.convergence import given
    from traincast.convergence.logs.reading import Reading, read_runs

    given.path("A log", path)
    _check(columns, steps_per_epoch)
    runs = read_runs(path, Reading(columns=columns, steps_per_epoch=steps_per_epoch), on_progress)
    return {name: runs.log(name) for name in runs.sheets}


def _check(columns: Mapping[str, str] | None, steps_per_epoch: float | None) -> None:
    from traincast.convergence import given

    if columns is not None and not (
        isinstance(columns, Mapping)
        and all(isinstance(meant, str) and isinstance(name, str) for meant, name in columns.items())
    ):
        raise InputError(f"columns= should map what is meant to a column's name, {{'step': 'it'}}, not {columns!r}.")
    if steps_per_epoch is not None:
        given.number("steps_per_epoch", steps_per_epoch)
