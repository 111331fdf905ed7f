"""Sheets of any origin as a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from traincast.errors import FileFormatError, NothingLoggedError
from traincast.logs import gate, names
from traincast.logs.clock import seconds_of
from traincast.logs.counters import (
    column_of,
    epoch_name,
    step_name,
    with_epochs_told,
    without_means_of_epochs,
    without_own_counter,
)
from traincast.logs.log import FloatArray, Log, Series
from traincast.logs.lost_losses import with_lost_losses
from traincast.logs.meant import columns_meant
from traincast.logs.names import Metric
from traincast.logs.ordering import order_of
from traincast.logs.percent import in_percent
from traincast.logs.placing import Placed, place
from traincast.logs.series import Axis, series_of
from traincast.logs.sheet import Facts, Sheet
from traincast.logs.slips import without_slips
from traincast.logs.splits import by_file, by_phase, splits_of

_LENGTHS = ("total_steps", "n_epochs")
_CHANGES = 0.25  # of the rows: a length is another one no more often


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where sheets come from and what is known beside them."""

    path: str
    format: str
    facts: Facts
    remarks: tuple[str, ...] = ()
    steps_per_epoch: float | None = None  # given by the user
    metric: str | None = None  # asked for by the user
    named: frozenset[str] = frozenset()  # by the user: these columns are metrics, whatever they are called
    in_percent: frozenset[str] = frozenset()  # columns that are known to be, from what was read before


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
        (part for sheet in sheets for part in by_phase(sheet)),
        key=lambda part: part.split is not None and part.split != "train",
    )
    origin = replace(origin, in_percent=in_percent(sheets, origin.in_percent))
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
        unread=_unread(sheets, {one.name for one in series}),
    )


def _unread(sheets: Sequence[Sheet], used: set[str]) -> tuple[str, ...]:
    """Columns that were not read, and those that were and told nothing."""
    others: dict[str, None] = {}
    for sheet in sheets:
        positions = _positions(sheet)
        others |= dict.fromkeys(name for name in (*sheet.columns, *sheet.unread) if name not in positions)
    return tuple(name for name in others if name not in used)


def _read(sheet: Sheet, origin: Origin, facts: Facts, train_steps_per_epoch: float | None) -> _Read:
    metrics = _metrics_of(sheet, origin)
    if not metrics:
        return _Read((), None, None, None, (), ())
    sheet, remarks = without_slips(sheet)
    sheet, own = without_own_counter(sheet, train_steps_per_epoch)
    training = [name for name, (_, split) in metrics.items() if split == "train"]
    sheet, told = without_means_of_epochs(with_epochs_told(sheet), training)
    sheet, lost = with_lost_losses(sheet, [name for name in training if metrics[name][0].metric == "loss"])
    remarks += [*own, *told, *lost, *_taken_for_validation(sheet, metrics, origin.path)]
    placed = _placed(sheet, metrics, origin, facts, train_steps_per_epoch)
    axis, order, restarts, more = _ordered(sheet, placed)
    remarks += [*placed.remarks, *more]
    series = []
    for name, (metric, split) in metrics.items():
        column, is_percent = _taken(sheet.columns[name], order), name in origin.in_percent
        one, told = series_of(column, axis, name=name, metric=metric, split=split, in_percent=is_percent)
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
        named = [name for name in sheet.columns if known(name)]
        name = max(named, key=lambda name: np.count_nonzero(~np.isnan(sheet.columns[name])), default=None)
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
    step = column_of(sheet, step_name(sheet))
    epoch = column_of(sheet, epoch_name(sheet))
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
    seconds = None
    for clock in names.clocks_of(sheet.columns):  # what is called seconds may be the duration of each row
        seconds, told = seconds_of(sheet.columns[clock], clock)
        if seconds is not None:
            remarks = list(told)
            break
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
        remarks.append(f"{np.count_nonzero(~is_known)} rows without a step are left out.")
        rows = np.flatnonzero(is_known)
        axis, resumed = axis.at(rows), tuple(np.searchsorted(rows, resumed).tolist())
    order = order_of(axis.steps, axis.epoch_index, resumed)
    if order.rows is not None:
        axis = axis.at(order.rows)
        rows = order.rows if rows is None else rows[order.rows]
    return axis, rows, order.restarts, [*remarks, *order.remarks]


def _metrics_of(sheet: Sheet, origin: Origin) -> dict[str, tuple[Metric, str]]:
    """The columns that measure learning, each with its split."""
    path, positions = origin.path, _positions(sheet)
    asked = {*origin.named, *(columns_meant(origin.metric, sheet.columns) if origin.metric else ())}
    known = {name: names.metric_of(name) for name in sheet.columns if name not in positions}
    found = {
        name: metric or Metric(names.plain(name) or name, None)
        for name, metric in known.items()
        if metric is not None or name in asked
    }
    if not found and "value" in (lows := {names.plain(name): name for name in sheet.columns}):
        metric = next((one for word in PurePath(path).stem.split("-") if (one := names.metric_of(word))), None)
        found[lows["value"]] = metric or Metric("value", None)
    splits = splits_of(found, sheet, path)
    return {name: (metric, splits[name]) for name, metric in found.items()}


def _taken_for_validation(sheet: Sheet, metrics: dict[str, tuple[Metric, str]], path: str) -> list[str]:
    """What is taken for granted about columns that do not say of what they are."""
    unnamed = [name for name, (metric, split) in metrics.items() if metric.split is None and split == "validation"]
    if not unnamed or sheet.split:
        return []
    if by_file(path):
        return ["Judging by the file's name, its rows are validation rows."]
    return [f"No split is named for {', '.join(map(repr, unnamed))}: read as validation."]


def _positions(sheet: Sheet) -> set[str | None]:
    columns = sheet.columns
    return {
        step_name(sheet),
        names.first_of(columns, names.EPOCH_NAMES),
        *names.clocks_of(columns),
        *(name for name in columns if names.is_rate(name)),
        *(names.first_of(columns, known) for known in names.FACT_NAMES.values()),
    }


def _facts_of(sheet: Sheet) -> Facts:
    """What columns of one value say: the same batch size in every row. Of a length, which may be another when a run is
    resumed, the last one counts; a column that changes more often counts something.
    """
    told: dict[str, float] = {}
    for fact, known in names.FACT_NAMES.items():
        column = column_of(sheet, names.first_of(sheet.columns, known))
        values = column[np.isfinite(column)] if column is not None else np.zeros(0)
        n_changes = np.count_nonzero(np.diff(values))
        if (
            len(values)
            and gate.amount(float(values[-1])) is not None
            and n_changes <= (_CHANGES * len(values) if fact in _LENGTHS else 0)
        ):
            told[fact] = float(values[-1])
    return Facts(
        steps_per_epoch=told.get("steps_per_epoch"),
        total_steps=gate.whole(told.get("total_steps")),
        n_epochs=told.get("n_epochs"),
        batch_size=gate.whole(told.get("batch_size")),
    )


def _taken(column: FloatArray, rows: np.ndarray | None) -> FloatArray:
    return column if rows is None else column[rows]


def _nothing_found(sheets: Sequence[Sheet], path: str) -> str:
    found = ", ".join(dict.fromkeys(name for sheet in sheets for name in (*sheet.columns, *sheet.unread)))
    which = " Name the column that is one." if _unread(sheets, set()) else ""
    return (
        f"'{path}' has no loss, accuracy or other known metric with a finite value: it has "
        f"{found or 'no numbers'}.{which}"
    )
