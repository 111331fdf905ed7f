"""The learning curve of a model that has not run, from runs of other sizes of its family."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.convergence.transfer.runs import KnownRun
    from traincast.convergence.transfer.study import Study


def transfer(
    runs: str | Path,
    size: int,
    *,
    by: str = "depth",
    family: str | None = None,
    rows: str | None = None,
    split: str = "train",
    target: float | None = None,
    metric: str = "accuracy",
    total_steps: float | None = None,
    n_epochs: float | None = None,
    steps_per_epoch: float | None = None,
) -> Study:
    """Parameters, curve and epochs to a target of a model of that size, and how wrong that is for models that ran.

    `runs` is a CSV or JSON table with a row for each run: model, depth (or the column that `by` names), family,
    hardware, and either b0, b1, b2 and epochs, or a log. From logs, the loss of `split` is fitted, and `target` counts
    the epochs until `metric` is there. `rows` chooses by the table's own column `split`. The curve is as long as
    `total_steps`, or `n_epochs` of `steps_per_epoch`, or the longest log.
    """
    from traincast.convergence.transfer.runs import Wanted, read_known_runs
    from traincast.convergence.transfer.study import study

    wanted = Wanted(split=split, target=target, metric=metric, steps_per_epoch=steps_per_epoch)
    is_depth = by == "depth"
    known = read_known_runs(runs, wanted, size=None if is_depth else by.strip().lower(), split=rows)
    if target is not None and all(run.loss is None for run in known):
        raise InputError(f"A target counts epochs in logs, and '{runs}' has none: leave it out, or add a column log.")
    length = _length(known, total_steps, n_epochs, runs)
    return study(known, size, total_steps=length, family=family, size_name="layers" if is_depth else by)


def _length(known: tuple[KnownRun, ...], total_steps: float | None, n_epochs: float | None, runs: str | Path) -> float:
    if total_steps is not None:
        return total_steps
    if n_epochs is not None:
        in_epoch = (
            1.0
            if known[0].unit == "epoch"
            else next((one.steps_per_epoch for one in known if one.steps_per_epoch), None)
        )
        if in_epoch is None:
            raise InputError(f"'{runs}' does not say how many steps an epoch has: give the steps of an epoch.")
        return n_epochs * in_epoch
    ends = [float(one.loss.steps[-1]) for one in known if one.loss is not None]
    if not ends:
        raise InputError(f"'{runs}' has no logs, so it does not say how long a run is: give its steps or epochs.")
    return max(ends)
