"""Losses that are written as 0 because they are not finite.

The Trainer of transformers leaves NaN out of the mean that it logs (`logging_nan_inf_filter`, on by default): a run
that has diverged logs a loss of 0, beside a gradient norm of NaN. A loss of 0 alone may be true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from traincast.logs import names
from traincast.logs.counters import column_of, epoch_name, step_name
from traincast.logs.sheet import Sheet


def with_lost_losses(sheet: Sheet, losses: Iterable[str]) -> tuple[Sheet, list[str]]:
    """The sheet with infinity for such zeros, and what was done."""
    gradients = [column for name, column in sheet.columns.items() if names.is_gradient_norm(name)]
    is_lost = np.zeros(sheet.n_rows, bool)
    for column in gradients:
        is_lost |= np.isinf(column)
    if not is_lost.any():
        return sheet, []
    place = column_of(sheet, step_name(sheet) or epoch_name(sheet))  # TensorBoard has a row for each of both
    if place is not None:
        is_lost |= np.isin(place, place[is_lost & ~np.isnan(place)])
    kept, remarks = dict(sheet.columns), []
    for name in losses:
        if (is_zero := is_lost & (kept[name] == 0)).any():
            kept[name] = np.where(is_zero, np.inf, kept[name])
            remarks.append(f"'{name}' is 0 where the gradients are not finite: it is read as not finite there.")
    return (replace(sheet, columns=kept), remarks) if remarks else (sheet, [])
