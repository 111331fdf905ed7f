"""A chart of W&B's web page as the table that it exports: one column a run, 'amber-12 - train/loss'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.logs import names
from traincast.logs.log import FloatArray
from traincast.logs.sheet import Sheet


def by_panel_run(sheet: Sheet) -> list[Sheet]:
    """A sheet a run, whose columns have the names of the metrics; the sheet as it is where it is no such table."""
    found = {name: panel for name in sheet.columns if (panel := names.panel_of(name)) is not None}
    if not found:
        return [sheet]
    common = {name: column for name, column in sheet.columns.items() if name not in found}
    sheets = []
    for run in dict.fromkeys(run for run, _ in found.values()):
        own: dict[str, FloatArray] = {
            metric: sheet.columns[name] for name, (of_run, metric) in found.items() if of_run == run
        }
        is_there = ~np.isnan(np.array(list(own.values()))).all(axis=0)
        whole = replace(sheet, columns={**common, **own}, words={**sheet.words, "run": (run,) * sheet.n_rows})
        sheets.append(whole.rows(is_there))
    return sheets
