"""Runs of a table: fitted already, or with a log to which Optimus' law is fitted here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.curves.log_question import target_for
from traincast.curves.optimus import fit_optimus
from traincast.curves.size_transfer.fits import EPOCHS, PARAMETERS, Fit, chosen_rows, fit_of
from traincast.curves.size_transfer.table import Row
from traincast.errors import InputError
from traincast.logs.log import Log, Series
from traincast.logs.reading import Reading, read_runs

_WINDOW = 5  # rows, at least, of which the mean counts


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
        raise InputError(f"Some runs of '{path}' count steps and others only epochs: give the steps per epoch.")
    return runs


def _run(where: str, row: Row, folder: Path, wanted: Wanted, size: str | None) -> KnownRun:
    if not row.get("log"):
        return KnownRun(fit=fit_of(where, row, size=size), steps_per_epoch=wanted.steps_per_epoch)
    reading = Reading(steps_per_epoch=wanted.steps_per_epoch)
    log = read_runs(folder / row["log"], reading).chosen(row.get("run") or None)
    loss = log.find("loss", wanted.split)
    curve = fit_optimus(loss.steps, loss.values)
    found = {name: curve.parameters[name] for name in PARAMETERS}
    remarks = [f"{row.get('model')}: {remark}" for remark in (*log.remarks, *curve.warnings)]
    if wanted.target is not None:
        row = {name: cell for name, cell in row.items() if name not in EPOCHS}  # of another target, who knows
        epochs = epochs_until(log, wanted.metric, wanted.target)
        if epochs is None:
            remarks.append(f"{row.get('model')}: its log does not reach {wanted.metric} {wanted.target:g}.")
        else:
            found["epochs"] = epochs
    return KnownRun(
        fit=fit_of(where, row, size=size, found=found, counts_epochs=log.counts_epochs),
        loss=loss,
        unit=log.unit,
        steps_per_epoch=log.steps_per_epoch,
        remarks=tuple(remarks),
    )


def epochs_until(log: Log, metric: str, target: float) -> float | None:
    """Epochs until a metric was as good as the target for the first time; None where it was not, or nobody knows.

    Of an evaluation where there is one. Of training it is a mean that counts, not one lucky batch.
    """
    is_evaluated = any(one.metric == metric and one.split == "validation" for one in log.series)
    series = log.find(metric, "validation" if is_evaluated else None)
    steps, values, epochs = series.steps, series.values, series.epochs
    if series.split == "train" and series.kind == "point" and len(series) > _WINDOW:
        n_mean = max(_WINDOW, _rows_of_epoch(log, series))
        sums = np.cumsum(np.concatenate(([0.0], values)))
        values = (sums[n_mean:] - sums[:-n_mean]) / n_mean
        middle = slice((n_mean - 1) // 2, (n_mean - 1) // 2 + len(values))
        steps, epochs = steps[middle], None if epochs is None else epochs[middle]
    meant, _ = target_for(series, target)
    is_there = values >= meant if series.is_rising else values <= meant
    if not is_there.any():
        return None
    first = int(np.argmax(is_there))
    if epochs is not None and np.isfinite(epochs[first]):
        return float(epochs[first])
    return None if not log.steps_per_epoch else float(steps[first]) / log.steps_per_epoch


def _rows_of_epoch(log: Log, series: Series) -> int:
    """How many rows an epoch has; a fiftieth of them all where nobody knows, and never more than half."""
    n_rows = len(series)
    span = float(series.steps[-1] - series.steps[0])
    share = log.steps_per_epoch / span if log.steps_per_epoch and span > 0 else 0.02
    return int(min(share * n_rows, 0.5 * n_rows))
