"""Which column counts steps, and rows of a sheet that count something else than the others do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from traincast.logs import gate, names
from traincast.logs.log import FloatArray
from traincast.logs.placing import begins_again, stride_of
from traincast.logs.sheet import Sheet


def step_name(sheet: Sheet) -> str | None:
    """The counter that is meant; of several, the first that most rows have."""
    spelled = {names.plain(name): name for name in reversed(list(sheet.columns))}
    known = [spelled[name] for name in names.STEP_NAMES if name in spelled]
    if len(known) < 2:
        return known[0] if known else None
    share = {name: np.count_nonzero(np.isfinite(sheet.columns[name])) / max(1, sheet.n_rows) for name in known}
    return next((name for name in known if share[name] > 0.5), max(known, key=lambda name: share[name]))


def epoch_name(sheet: Sheet) -> str | None:
    return names.first_of(sheet.columns, names.EPOCH_NAMES)


def column_of(sheet: Sheet, name: str | None) -> FloatArray | None:
    """A column of positions: what is no place in a run is unknown. None where nothing is known."""
    if name is None:
        return None
    column = sheet.columns[name]
    is_place = gate.is_place(column)
    if not is_place.any():
        return None
    return column if is_place.all() else np.where(is_place, column, np.nan)


def without_own_counter(sheet: Sheet, train_steps_per_epoch: float | None) -> tuple[Sheet, list[str]]:
    """Validation rows that count their own batches are one evaluation: without those steps, at the end of the epoch."""
    counter = step_name(sheet)
    step, epoch = column_of(sheet, counter), column_of(sheet, epoch_name(sheet))
    if train_steps_per_epoch is None or step is None or epoch is None or not begins_again(step, epoch):
        return sheet, []
    known = step[~np.isnan(step)]
    if known.max() == known.min():  # how many batches each evaluation has, as mmdetection writes it
        return sheet.without(counter), []
    if stride_of(known) != 1 or known.max() + 1 >= 0.98 * train_steps_per_epoch or known.max() - known.min() < 2:
        return sheet, []
    remark = f"The {sheet.split} rows count their own batches: their mean is used at the end of the epoch."
    return sheet.without(counter), [remark]


def with_epochs_told(sheet: Sheet) -> Sheet:
    """Rows without an epoch that have its number for their step, as mmengine's evaluations do, are of that epoch."""
    counter, of_epoch = step_name(sheet), epoch_name(sheet)
    step, epoch = column_of(sheet, counter), column_of(sheet, of_epoch)
    if counter is None or of_epoch is None or step is None or epoch is None or not np.isnan(epoch).any():
        return sheet
    is_asked = np.isnan(epoch) & ~np.isnan(step)
    epoch_so_far = np.maximum.accumulate(np.where(np.isnan(epoch), -np.inf, epoch))
    step_so_far = np.maximum.accumulate(np.where(np.isnan(step) | is_asked, -np.inf, step))
    if not is_asked.any() or not ((step == epoch_so_far) & (step < step_so_far))[is_asked].all():
        return sheet
    placed = {counter: np.where(is_asked, np.nan, step), of_epoch: np.where(is_asked, step, epoch)}
    return replace(sheet, columns={**sheet.columns, **placed})


def without_means_of_epochs(sheet: Sheet, training: Iterable[str]) -> tuple[Sheet, list[str]]:
    """Training columns without their values in rows that have no step, where most of their rows have one."""
    step = column_of(sheet, step_name(sheet))
    if step is None or not (is_whole := np.isnan(step)).any() or column_of(sheet, epoch_name(sheet)) is None:
        return sheet, []
    kept, remarks = dict(sheet.columns), []
    for name in training:
        is_there = ~np.isnan(kept[name])
        n_whole = np.count_nonzero(is_there & is_whole)
        if n_whole and np.count_nonzero(is_there) > 2 * n_whole:
            kept[name] = np.where(is_whole, np.nan, kept[name])
            remarks.append(f"'{name}' also has {n_whole} values without a step, for whole epochs: they are left out.")
    return (replace(sheet, columns=kept), remarks) if remarks else (sheet, [])
