"""Sheets of any origin as a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from traincast.convergence.logs import names
from traincast.convergence.logs.clock import seconds_of
from traincast.convergence.logs.log import FloatArray, Log, Series
from traincast.convergence.logs.names import Metric
from traincast.convergence.logs.ordering import order_of
from traincast.convergence.logs.placing import Placed, begins_again, place, stride_of
from traincast.convergence.logs.series import Axis, series_of
from traincast.convergence.logs.sheet import Facts, Sheet
from traincast.errors import FileFormatError, NothingLoggedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where sheets come from and what is known beside them."""

    path: str
    format: str
    facts: Facts
    remarks: tuple[str, ...] = ()
    steps_per_epoch: float | None = None  # given by the user


@dataclass(frozen=True, eq=False, slots=True)
class _Read:
    """What one sheet gave."""

    series: tuple[Series, ...]
    rate: Series | None
    wait: Series | None
    steps_per_epoch: float | None
    restarts: tuple[float, ...]
    remarks: tuple[str, ...]


def log_of(sheets: Sequence[Sheet], origin: Origin) -> Log:
    """The log of one run; training sheets come first, as they say how many steps an epoch has."""
    facts = origin.facts
    for sheet in sheets:
        facts = facts.or_else(_facts_of(sheet))
    parts = sorted(
        (part for sheet in sheets for part in _by_split(sheet)),
        key=lambda part: part.split is not None and part.split != "train",
    )
    read: list[_Read] = []
    for part in parts:
        read.append(_read(part, origin, facts, read[0].steps_per_epoch if read else None))
    series = tuple(one for some in read for one in some.series)
    if not series:
        # The columns of a table stay; lines of other kinds may bring their metrics later.
        kind = FileFormatError if origin.format == "csv" else NothingLoggedError
        raise kind(_nothing_found(sheets, origin.path))
    return Log(
        path=origin.path,
        format=origin.format,
        series=series,
        learning_rate=next((some.rate for some in read if some.rate is not None), None),
        data_wait=next((some.wait for some in read if some.wait is not None), None),
        steps_per_epoch=next((some.steps_per_epoch for some in read if some.steps_per_epoch is not None), None),
        total_steps=facts.total_steps,
        n_epochs=facts.n_epochs,
        batch_size=facts.batch_size,
        restarts=tuple(sorted({step for some in read for step in some.restarts})),
        remarks=tuple(dict.fromkeys([*origin.remarks, *(remark for some in read for remark in some.remarks)])),
    )


def _read(sheet: Sheet, origin: Origin, facts: Facts, train_steps_per_epoch: float | None) -> _Read:
    metrics = _metrics_of(sheet, origin.path)
    if not metrics:
        return _Read((), None, None, None, (), ())
    sheet, remarks = _own_counter_dropped(sheet, train_steps_per_epoch)
    if _split_by_file(origin.path) and any(metric.split is None for metric, _ in metrics.values()):
        remarks.append("By the name of the file, its rows are of validation.")
    placed = _placed(sheet, metrics, origin, facts, train_steps_per_epoch)
    axis, order, restarts, more = _ordered(sheet, placed)
    remarks += [*placed.remarks, *more]
    series = []
    for name, (metric, split) in metrics.items():
        one, told = series_of(_taken(sheet.columns[name], order), axis, name=name, metric=metric, split=split)
        remarks += told
        series += [one] if one is not None else []
    rate, wait = _beside(sheet, axis, order, remarks)
    return _Read(tuple(series), rate, wait, placed.steps_per_epoch, restarts, tuple(remarks))


def _beside(
    sheet: Sheet, axis: Axis, order: np.ndarray | None, remarks: list[str]
) -> tuple[Series | None, Series | None]:
    """What is no metric but goes along: the learning rate, and how long a step waits for data."""
    found: list[Series | None] = []
    for known, about in ((names.is_rate, "learning_rate"), (names.is_wait, "data_wait")):
        name = next((name for name in sheet.columns if known(name)), None)
        if name is None:
            found.append(None)
            continue
        column = _taken(sheet.columns[name], order)
        if known is names.is_wait and names.is_milliseconds(name):
            column = column / 1e3
        one, told = series_of(column, axis, name=name, metric=Metric(about, "train"), split="train")
        found.append(one)
        remarks += told
    return found[0], found[1]


def _placed(
    sheet: Sheet, metrics: Iterable[str], origin: Origin, facts: Facts, train_steps_per_epoch: float | None
) -> Placed:
    step = _column(sheet, _step_name(sheet))
    epoch = _column(sheet, names.first_of(sheet.columns, names.EPOCH_NAMES))
    rows_per_epoch = 1.0
    if step is None and epoch is not None and train_steps_per_epoch is None:
        n_epochs = 1 + np.count_nonzero(np.diff(epoch[~np.isnan(epoch)]))
        rows_per_epoch = max(np.count_nonzero(~np.isnan(sheet.columns[name])) for name in metrics) / n_epochs
    return place(
        step,
        epoch,
        n_rows=sheet.n_rows,
        steps_per_epoch=origin.steps_per_epoch or facts.steps_per_epoch or train_steps_per_epoch,
        is_given=origin.steps_per_epoch is not None,
        rows_per_epoch=rows_per_epoch,
    )


def _ordered(sheet: Sheet, placed: Placed) -> tuple[Axis, np.ndarray | None, tuple[float, ...], list[str]]:
    """The axis of the rows that count, which rows these are (None: all), restarts and remarks."""
    remarks: list[str] = []
    clock = names.clock_of(sheet.columns)
    seconds = None
    if clock is not None:
        seconds, told = seconds_of(sheet.columns[clock], clock)
        remarks += told
    axis = Axis(
        steps=placed.steps,
        epochs=placed.epochs,
        epoch_index=placed.epoch_index,
        seconds=seconds,
        steps_per_epoch=placed.steps_per_epoch,
    )
    is_known = np.isfinite(placed.steps)
    rows, resumed = None, sheet.resumed
    if not is_known.all():
        remarks.append(f"{np.count_nonzero(~is_known)} rows do not say at which step they are and are left out.")
        rows = np.flatnonzero(is_known)
        axis, resumed = axis.at(rows), tuple(np.searchsorted(rows, resumed).tolist())
    order = order_of(axis.steps, axis.epoch_index, resumed)
    if order.rows is not None:
        axis = axis.at(order.rows)
        rows = order.rows if rows is None else rows[order.rows]
    return axis, rows, order.restarts, [*remarks, *order.remarks]


def _own_counter_dropped(sheet: Sheet, train_steps_per_epoch: float | None) -> tuple[Sheet, list[str]]:
    """Validation rows that count their own batches are one evaluation: without those steps, at the end of the epoch."""
    step_name = _step_name(sheet)
    step, epoch = _column(sheet, step_name), _column(sheet, names.first_of(sheet.columns, names.EPOCH_NAMES))
    if train_steps_per_epoch is None or step is None or epoch is None or not begins_again(step, epoch):
        return sheet, []
    known = step[~np.isnan(step)]
    if stride_of(known) != 1 or known.max() + 1 >= 0.98 * train_steps_per_epoch or known.max() - known.min() < 2:
        return sheet, []
    remark = f"The {sheet.split} rows count their own batches: their mean counts at the end of the epoch."
    return sheet.without(step_name), [remark]


def _by_split(sheet: Sheet) -> list[Sheet]:
    """One sheet for each phase that a column names."""
    column = names.first_of(sheet.words, names.SPLIT_COLUMNS)
    if column is None:
        return [sheet]
    splits = np.array([names.split_of(word) or "" for word in sheet.words[column]], object)
    if not (splits != "").any():
        return [sheet]
    return [sheet.rows(splits == split, split=split or None) for split in sorted(set(splits))]


def _metrics_of(sheet: Sheet, path: str) -> dict[str, tuple[Metric, str]]:
    """The columns that measure learning, each with its split."""
    by_file = _split_by_file(path)
    found = {}
    for name in sheet.columns:
        metric = names.metric_of(name)
        if metric is not None and name not in _positions(sheet):
            found[name] = (metric, metric.split or sheet.split or by_file or "train")
    if not found and "value" in (lows := {names.plain(name): name for name in sheet.columns}):
        metric = next((one for word in PurePath(path).stem.split("-") if (one := names.metric_of(word))), None)
        found[lows["value"]] = (metric or Metric("value", None), sheet.split or by_file or "train")
    return found


def _split_by_file(path: str) -> str | None:
    """'val_log.csv' is of validation; a file that is called test is more often just a test."""
    split = names.split_of(PurePath(path).name.split(".")[0])
    return split if split == "validation" else None


def _positions(sheet: Sheet) -> set[str | None]:
    columns = sheet.columns
    return {
        _step_name(sheet),
        names.first_of(columns, names.EPOCH_NAMES),
        names.clock_of(columns),
        *(name for name in columns if names.is_rate(name)),
        *(names.first_of(columns, known) for known in names.FACT_NAMES.values()),
    }


def _facts_of(sheet: Sheet) -> Facts:
    """What columns of one value say: the same batch size in every row."""
    told: dict[str, float] = {}
    for fact, known in names.FACT_NAMES.items():
        column = _column(sheet, names.first_of(sheet.columns, known))
        values = np.unique(column[np.isfinite(column)]) if column is not None else np.zeros(0)
        if len(values) == 1 and values[0] > 0:
            told[fact] = float(values[0])
    return Facts(
        steps_per_epoch=told.get("steps_per_epoch"),
        total_steps=int(told["total_steps"]) if "total_steps" in told else None,
        n_epochs=told.get("n_epochs"),
        batch_size=int(told["batch_size"]) if "batch_size" in told else None,
    )


def _column(sheet: Sheet, name: str | None) -> FloatArray | None:
    """A column of positions: what is not finite is unknown. None where nothing is known."""
    if name is None or not np.isfinite(sheet.columns[name]).any():
        return None
    column = sheet.columns[name]
    return np.where(np.isinf(column), np.nan, column) if np.isinf(column).any() else column


def _step_name(sheet: Sheet) -> str | None:
    """The counter that is meant; of several, the first that most rows have."""
    spelled = {names.plain(name): name for name in reversed(list(sheet.columns))}
    known = [spelled[name] for name in names.STEP_NAMES if name in spelled]
    if len(known) < 2:
        return known[0] if known else None
    share = {name: np.count_nonzero(np.isfinite(sheet.columns[name])) / max(1, sheet.n_rows) for name in known}
    return next((name for name in known if share[name] > 0.5), max(known, key=lambda name: share[name]))


def _taken(column: FloatArray, rows: np.ndarray | None) -> FloatArray:
    return column if rows is None else column[rows]


def _nothing_found(sheets: Sequence[Sheet], path: str) -> str:
    found = ", ".join(dict.fromkeys(name for sheet in sheets for name in sheet.columns)) or "no numbers"
    return f"'{path}' has no loss, accuracy or other metric that we know with a finite value: it has {found}."
