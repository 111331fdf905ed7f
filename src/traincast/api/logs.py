"""Logs of training runs, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
    on_progress: Progress | None = None,
) -> Log:
    """What a run has logged so far: series over one global step, and remarks about what was repaired or left out.

    The format is recognised (CSV, JSON lines, Trainer state, TensorBoard, W&B, MLPerf, plain text; gzipped too), or
    given: "csv", "jsonl", "trainer_state", "tensorboard", "wandb", "mlperf", "text". `pattern` is a regular expression
    with named groups (step, epoch, loss, val_accuracy, seconds, lr) for plain text. `columns` maps what is meant to the
    name of a column: {"step": "it", "val_loss": "l2"}. A file with several runs needs `run`.
    """
    from traincast.convergence.logs.reading import Reading, read_runs

    reading = Reading(format=format, pattern=pattern, columns=columns, steps_per_epoch=steps_per_epoch)
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
    from traincast.convergence.logs.reading import Reading, read_runs

    runs = read_runs(path, Reading(columns=columns, steps_per_epoch=steps_per_epoch), on_progress)
    return {name: runs.log(name) for name in runs.sheets}
