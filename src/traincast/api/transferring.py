"""The learning curve of a model that has not run, from runs of other sizes of its family."""

from __future__ import annotations

import math
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
    from traincast.convergence import given
    from traincast.convergence.logs.log import SPLITS
    from traincast.convergence.transfer.fits import DEPTH
    from traincast.convergence.transfer.runs import Wanted, read_known_runs
    from traincast.convergence.transfer.study import study

    whole = given.number("The size that is asked for", size)
    if not (1 <= whole <= given.MOST and whole.is_integer()):
        raise InputError(
            f"The size that is asked for should be a whole number from 1 to {given.MOST:g}, not {whole:g}."
        )
    words = {"by": by, "split": split, "metric": metric, "family": family, "rows": rows}
    for name, value in words.items():
        if value is not None or name in ("by", "split", "metric"):
            given.word(name, value)
    if split not in SPLITS:
        raise InputError(f"There is no split '{split}': choose {', '.join(SPLITS)}.")
    lengths = {"total_steps": total_steps, "n_epochs": n_epochs, "steps_per_epoch": steps_per_epoch}
    for name, length in lengths.items():
        if length is not None:
            given.above_0(name, length)
    if target is not None and not math.isfinite(given.number("A target", target)):
        raise InputError(f"A target is a finite number, not {target}.")
    column = by.strip().lower()
    is_depth = column in DEPTH
    wanted = Wanted(split=split, target=target, metric=metric, steps_per_epoch=steps_per_epoch)
    known = read_known_runs(given.path("The table of runs", runs), wanted, size=column, split=rows)
    if target is not None and all(run.loss is None for run in known):
        raise InputError(f"A target counts epochs in logs, and '{runs}' has none: leave it out, or add a column log.")
    length = _length(known, total_steps, n_epochs, runs)
    return study(known, int(whole), total_steps=length, family=family, size_name="layers" if is_depth else by)


def _length(known: tuple[KnownRun, ...], total_steps: float | None, n_epochs: float | None, runs: str | Path) -> float:
    from traincast.convergence.asked import check_same_length

    is_epoch = known[0].unit == "epoch"
    in_epoch = 1.0 if is_epoch else next((one.steps_per_epoch for one in known if one.steps_per_epoch), None)
    if total_steps is not None:
        if n_epochs is not None and in_epoch is not None:
            check_same_length(total_steps, n_epochs, in_epoch, known[0].unit)
        return total_steps
    if n_epochs is not None:
        if in_epoch is None:
            raise InputError(f"'{runs}' does not say how many steps an epoch has: give the steps of an epoch.")
        return n_epochs * in_epoch
    ends = [float(one.loss.steps[-1]) for one in known if one.loss is not None]
    if not ends:
        raise InputError(f"'{runs}' has no logs, so it does not say how long a run is: give its steps or epochs.")
    return max(ends)
