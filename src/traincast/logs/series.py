"""One column of a sheet as a series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.logs.clock import never_back
from traincast.logs.counting import count
from traincast.logs.log import Divergence, FloatArray, Series
from traincast.logs.names import Metric, is_share
from traincast.logs.percent import is_neither
from traincast.logs.running_mean import in_epoch, is_running_mean


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Axis:
    """Where the rows of a sheet are, in the order of their steps."""

    steps: FloatArray
    epochs: FloatArray | None
    epoch_index: FloatArray | None
    seconds: FloatArray | None
    steps_per_epoch: float | None

    @property
    def unit(self) -> str:
        """What its steps are: epochs where nothing else is counted."""
        is_epoch = self.steps_per_epoch is None and self.epochs is not None and np.array_equal(self.steps, self.epochs)
        return "epoch" if is_epoch else "step"

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Axis:
        """The same for some rows."""
        return Axis(
            steps=self.steps[chosen],
            epochs=None if self.epochs is None else self.epochs[chosen],
            epoch_index=None if self.epoch_index is None else self.epoch_index[chosen],
            seconds=None if self.seconds is None else self.seconds[chosen],
            steps_per_epoch=self.steps_per_epoch,
        )


def series_of(
    column: FloatArray, axis: Axis, *, name: str, metric: Metric, split: str, in_percent: bool = False
) -> tuple[Series | None, list[str]]:
    """The column's series and what was done to it; None if no cell has a finite number."""
    remarks: list[str] = []
    is_there = ~np.isnan(column)
    if not is_there.all():
        column, axis = column[is_there], axis.at(is_there)
    is_finite = np.isfinite(column)
    n_not_finite = len(column) - int(np.count_nonzero(is_finite))
    first_bad, divergence = None, None
    if n_not_finite:
        first_bad = float(axis.steps[np.argmin(is_finite)])
        divergence = _divergence(is_finite, axis)
        rows, they = ("one row", "it is") if n_not_finite == 1 else (f"{n_not_finite:,} rows", "they are")
        first = "" if n_not_finite == 1 else "first "
        where = f"{first}at {axis.unit} {count(first_bad, axis.unit)}"
        remarks.append(f"'{name}' is not finite in {rows}, {where}: {they} left out.")
        column, axis = column[is_finite], axis.at(is_finite)
    if not len(column):
        return None, remarks
    column, axis = _means_of_repeats(column, axis, name, remarks)
    if is_share(metric.metric):
        column = _fractions(column, name, remarks, in_percent=in_percent)
    column, axis, kind = _kept_by_kind(column, axis, name, metric, split, remarks)
    series = Series(
        name=name,
        metric=metric.metric,
        split=split,
        steps=axis.steps,
        values=column,
        epochs=axis.epochs,
        seconds=None if axis.seconds is None or np.isnan(axis.seconds).all() else never_back(axis.seconds),
        kind=kind,
        n_not_finite=n_not_finite,
        first_not_finite_step=first_bad,
        in_percent=in_percent,
        divergence=divergence,
    )
    return series, remarks


def _divergence(is_finite: NDArray[np.bool_], axis: Axis) -> Divergence | None:
    """The rows after the last finite one."""
    n_rows = int(np.argmax(is_finite[::-1]))
    if not n_rows:
        return None
    clock = np.zeros(0) if axis.seconds is None else axis.seconds[-n_rows:]
    known_s = clock[np.isfinite(clock)]
    return Divergence(
        first_step=float(axis.steps[-n_rows]),
        last_step=float(axis.steps[-1]),
        n_rows=n_rows,
        last_s=float(known_s.max()) if len(known_s) else None,
    )


def _means_of_repeats(column: FloatArray, axis: Axis, name: str, remarks: list[str]) -> tuple[FloatArray, Axis]:
    """One value a step: the mean where there are several, at the time of the last."""
    is_last = np.concatenate((axis.steps[1:] != axis.steps[:-1], [True]))
    if is_last.all():
        return column, axis
    ends = np.flatnonzero(is_last)
    counts = np.diff(np.concatenate(([-1], ends)))
    means = np.add.reduceat(column, ends - counts + 1) / counts
    remarks.append(f"'{name}' has up to {counts.max()} rows of one {axis.unit}: they are averaged.")
    return means, axis.at(ends)


def _fractions(column: FloatArray, name: str, remarks: list[str], *, in_percent: bool) -> FloatArray:
    if in_percent:
        remarks.append(f"'{name}' is in percent and is converted to a fraction.")
        return column / 100
    if is_neither(highest := float(column.max())):
        remarks.append(
            f"'{name}' goes up to {highest:g}, which is neither a fraction nor a percentage, and is kept as is."
        )
    return column


def _kept_by_kind(
    column: FloatArray, axis: Axis, name: str, metric: Metric, split: str, remarks: list[str]
) -> tuple[FloatArray, Axis, str]:
    if metric.metric in ("learning_rate", "data_wait"):
        return column, axis, "point"
    index, n_steps = axis.epoch_index, axis.steps_per_epoch
    if (
        index is not None
        and n_steps is not None
        and not metric.is_epoch_mean
        and is_running_mean(column, axis.steps, index, n_steps)
    ):
        ends = _ends_of_epochs(axis.steps, index, n_steps)
        remarks.append(
            f"'{name}' is a running mean since the start of its epoch: the last rows of {len(ends)} epochs are "
            f"kept, and {len(column) - len(ends)} others left out."
        )
        return column[ends], axis.at(ends), "running_mean"
    if metric.is_epoch_mean or (split == "train" and _is_one_an_epoch(axis)):
        return column, axis, "epoch_mean"
    return column, axis, "point"


def _ends_of_epochs(steps: FloatArray, epoch_index: FloatArray, steps_per_epoch: float) -> NDArray[np.int64]:
    """The last row of each epoch; of the last one only if it got as far as the others did."""
    ends = np.flatnonzero(np.concatenate((epoch_index[1:] != epoch_index[:-1], [True])))
    k = in_epoch(steps[ends], epoch_index[ends], steps_per_epoch)
    return ends if k[-1] >= 0.95 * np.median(k[:-1]) else ends[:-1]


def _is_one_an_epoch(axis: Axis) -> bool:
    """Values at whole epochs only, one each."""
    epochs = axis.epochs
    if epochs is None or len(epochs) < 2 or (epochs[:1000] != np.floor(epochs[:1000])).any():
        return False
    return bool((epochs == np.floor(epochs)).all())
