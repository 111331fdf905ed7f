"""Logs of training runs, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.logs.log import Log
    from traincast.logs.reading import Reading

Progress = Callable[[float], None]  # the fraction that is read


@question
def read_log(
    path: str | Path,
    *,
    run: o.OneRun = None,
    metric: o.Metric = None,
    on_progress: Progress | None = None,
    **how: Unpack[o.ReadingOptions],
) -> Log:
    """What a run has logged so far: series over one global step, and remarks about what was repaired or left out.

    The format is recognised (CSV, JSON lines or document, Trainer state, TensorBoard, W&B, MLPerf, plain text; gzipped
    too), or given: "csv", "jsonl", "json", "trainer_state", "tensorboard", "wandb", "mlperf", "text". `pattern` is a
    regular expression with named groups (step, epoch, loss, val_accuracy, seconds, lr) for plain text. `columns` maps
    what is meant to the name of a column: {"step": "it", "val_loss": "l2"}. A file with several runs needs `run`.
    `metric` is the name of a column, or a part of it, that is read as a metric though we do not know it.
    """
    from traincast.logs import argument_checks
    from traincast.logs.reading import read_runs

    argument_checks.path("A log", path)
    return read_runs(path, reading_of(metric=metric, **how), on_progress).chosen(run)


@question
def read_logs(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    steps_per_epoch: o.StepsPerEpoch = None,
    on_progress: Progress | None = None,
) -> dict[str, Log]:
    """The logs of a file with several runs, told apart by a column such as 'run' or 'curve_id'.

    `columns` may say which one, or which ones together: {"run": "n_gpus,batch"}. A file of one run has it under "".
    """
    from traincast.logs import argument_checks
    from traincast.logs.reading import read_runs

    argument_checks.path("A log", path)
    runs = read_runs(path, reading_of(columns=columns, steps_per_epoch=steps_per_epoch), on_progress)
    return {name: runs.log(name) for name in runs.sheets}


@question
def reading_of(*, metric: o.Metric = None, **how: Unpack[o.ReadingOptions]) -> Reading:
    """How logs are to be read, checked."""
    from traincast.logs.reading import Reading

    return Reading(metric=metric, **how)
