"""Runs of a table: fitted already, or with a log to which Optimus' law is fitted here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.convergence.curves.optimus import fit_optimus
from traincast.convergence.logs.log import Log, Series
from traincast.convergence.logs.reading import Reading, read_runs
from traincast.convergence.transfer.fits import PARAMETERS, Fit, chosen_rows, fit_of
from traincast.convergence.transfer.table import Row
from traincast.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is taken from logs: which loss, and the epochs until a metric was as good as a target."""

    split: str = "train"
    target: float | None = None
    metric: str = "accuracy"
    steps_per_epoch: float | None = None


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class KnownRun:
    """A run with its fit; from a log, what was logged as well."""

    fit: Fit
    loss: Series | None = None
    unit: str = "step"
    steps_per_epoch: float | None = None
    remarks: tuple[str, ...] = ()


def read_known_runs(
    path: str | Path,
    wanted: Wanted,
    *,
    size: str | None = None,
    split: str | None = None,
) -> tuple[KnownRun, ...]:
    """Rows with model, a size, and b0, b1 and b2 or a log; where known family, hardware and epochs to the target.

    A log is a path from the table's folder on; `run` says which of several runs in it is meant. `split` chooses rows.
    """
    rows = chosen_rows(path, split=split)
    runs = tuple(_run(where, row, Path(path).parent, wanted, size) for where, row in rows)
    units = {run.unit for run in runs}
    if len(units) > 1:
        raise InputError(f"Some runs of '{path}' count steps and some epochs only: give the steps of an epoch.")
    return runs


def _run(where: str, row: Row, folder: Path, wanted: Wanted, size: str | None) -> KnownRun:
    if not row.get("log"):
        return KnownRun(fit=fit_of(where, row, {}, size=size), steps_per_epoch=wanted.steps_per_epoch)
    reading = Reading(steps_per_epoch=wanted.steps_per_epoch)
    log = read_runs(folder / row["log"], reading).chosen(row.get("run") or None)
    loss = log.find("loss", wanted.split)
    curve = fit_optimus(loss.steps, loss.values)
    found = {name: curve.parameters[name] for name in PARAMETERS}
    epochs = None if wanted.target is None else epochs_until(log, wanted.metric, wanted.target)
    remarks = [f"{row.get('model')}: {remark}" for remark in (*log.remarks, *curve.warnings)]
    if epochs is not None:
        found["epochs"] = epochs
    elif wanted.target is not None:
        remarks.append(f"{row.get('model')}: its log does not get to {wanted.metric} {wanted.target:g}.")
    return KnownRun(
        fit=fit_of(where, row, {}, size=size, found=found, counts_epochs=log.counts_epochs),
        loss=loss,
        unit=log.unit,
        steps_per_epoch=log.steps_per_epoch,
        remarks=tuple(remarks),
    )


def epochs_until(log: Log, metric: str, target: float) -> float | None:
    """Epochs until a metric was as good as the target for the first time; None where it was not, or nobody knows."""
    series = log.find(metric)
    is_there = series.values >= target if series.metric == "accuracy" else series.values <= target
    if not is_there.any():
        return None
    first = int(np.argmax(is_there))
    if series.epochs is not None and np.isfinite(series.epochs[first]):
        return float(series.epochs[first])
    return None if not log.steps_per_epoch else float(series.steps[first]) / log.steps_per_epoch
