"""The learning curve of a model that has not run, from runs of other sizes of its family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError, ParameterError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.curves.size_transfer.runs import KnownRun
    from traincast.curves.size_transfer.study import Study
    from traincast.curves.size_transfer.workers_curve import WorkersCurve

_USUAL_SERVERS = (2, 4)
_USUAL_SPEEDS = "paper-async"


@question
def transfer(
    runs: o.TableOfRuns,
    size: o.Size,
    *,
    by: o.SizeColumn = "depth",
    family: o.ModelFamily = None,
    rows: o.Rows = None,
    split: o.LossSplit = "train",
    target: o.Target = None,
    metric: o.TargetMetric = "accuracy",
    total_steps: o.TotalSteps = None,
    n_epochs: o.RunEpochs = None,
    steps_per_epoch: o.StepsPerEpoch = None,
    workers: o.TimedWorkers = None,
    servers: o.TimedServers = None,
    optimus: o.TimedBy = None,
    batch_size: o.TimedBatch = None,
) -> Study:
    """Parameters, curve and epochs to a target of a model of that size, and how wrong that is for models that ran.

    `runs` is a CSV or JSON table with a row for each run: model, depth (or the column that `by` names), family,
    hardware, and either b0, b1, b2 and epochs, or a log. From logs, the loss of `split` is fitted, and `target` counts
    the epochs until `metric` is there. `rows` chooses by the table's own column `split`. The curve is as long as
    `total_steps`, or `n_epochs` of `steps_per_epoch`, or the longest log.

    `workers` asks for the time to the target by numbers of workers and of parameter `servers` (2 and 4), at the speeds
    of `optimus`: "paper-async", "paper-sync" with a global `batch_size`, a CSV file of measured points, or
    "MODEL@DEVICE" ("MODEL@DEVICE@10Gb/s") for our forecast of synchronous workers.
    """
    from traincast.curves.size_transfer.fits import DEPTH
    from traincast.curves.size_transfer.runs import Wanted, read_known_runs
    from traincast.curves.size_transfer.study import study
    from traincast.logs import argument_checks

    for name, value in (("servers", servers), ("optimus", optimus), ("batch_size", batch_size)):
        if workers is None and value is not None:
            raise ParameterError(name, value, "it is about the time by workers: give numbers of these, too")
    column = by.strip().lower()
    is_depth = column in DEPTH
    wanted = Wanted(split=split, target=target, metric=metric, steps_per_epoch=steps_per_epoch)
    known = read_known_runs(argument_checks.path("The table of runs", runs), wanted, size=column, split=rows)
    if target is not None and all(run.loss is None for run in known):
        raise InputError(f"A target needs logs, but '{runs}' names none: leave it out, or add a column log.")
    length = _length(known, total_steps, n_epochs, runs)
    found = study(known, size, total_steps=length, family=family, size_name="layers" if is_depth else by)
    if workers is None:
        return found
    times, told = _times(found, workers, servers or _USUAL_SERVERS, optimus or _USUAL_SPEEDS, batch_size)
    return replace(found, workers=times, speeds=told)


def _times(
    found: Study, workers: Sequence[int], servers: Sequence[int], speeds: str, batch_size: int | None
) -> tuple[tuple[WorkersCurve, ...], str]:
    """Predicted epochs, times the steps of an epoch, at the speed of so many workers and servers."""
    from traincast.api.time_to_accuracy import times_at
    from traincast.api.worker_speeds import worker_speeds

    epochs = found.predicted.estimates.get("epochs")
    if epochs is None:
        raise InputError(
            "The time by workers needs epochs to the target of 2 models or more: a column epochs, or a target."
        )
    if found.steps_per_epoch is None:
        raise InputError("The time by workers needs the steps per epoch: give them.")
    curves, told = worker_speeds(speeds, batch_size, workers, servers)
    return times_at(epochs, curves, steps_per_epoch=found.steps_per_epoch), told


def _length(known: tuple[KnownRun, ...], total_steps: float | None, n_epochs: float | None, runs: str | Path) -> float:
    from traincast.curves.log_question import check_same_length

    is_epoch = known[0].unit == "epoch"
    in_epoch = 1.0 if is_epoch else next((one.steps_per_epoch for one in known if one.steps_per_epoch), None)
    if total_steps is not None:
        if n_epochs is not None and in_epoch is not None:
            check_same_length(total_steps, n_epochs, in_epoch, known[0].unit)
        return total_steps
    if n_epochs is not None:
        if in_epoch is None:
            raise InputError(f"'{runs}' does not give the steps per epoch: add them.")
        return n_epochs * in_epoch
    ends = [float(one.loss.steps[-1]) for one in known if one.loss is not None]
    if not ends:
        raise InputError(f"'{runs}' has no logs, so the length of a run is unknown: give its steps or epochs.")
    return max(ends)
