"""Of what the columns of a sheet are: training, validation or test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

import numpy as np

from traincast.logs import names
from traincast.logs.names import Metric
from traincast.logs.sheet import Sheet


def by_phase(sheet: Sheet) -> list[Sheet]:
    """One sheet for each phase that a column names."""
    column = names.first_of(sheet.words, names.SPLIT_COLUMNS)
    if column is None:
        return [sheet]
    splits = np.array([names.split_of(word) or "" for word in sheet.words[column]], object)
    if not (splits != "").any():
        return [sheet]
    return [sheet.rows(splits == split, split=split or None) for split in sorted(set(splits))]


def by_file(path: str) -> str | None:
    """'val_log.csv' is of validation; a file that is called test is more often just a test."""
    split = names.split_of(PurePath(path).name.split(".")[0])
    return split if split == "validation" else None


def splits_of(metrics: Mapping[str, Metric], sheet: Sheet, path: str) -> dict[str, str]:
    """The split of each column; training where nothing speaks for another."""
    beside = () if sheet.split or by_file(path) else beside_validation(metrics, sheet)
    found = {}
    for name, metric in metrics.items():
        is_validation = name in beside or names.is_of_a_set(metric.metric)
        found[name] = metric.split or sheet.split or by_file(path) or ("validation" if is_validation else "train")
    return found


def beside_validation(metrics: Mapping[str, Metric], sheet: Sheet) -> list[str]:
    """Columns such as the accuracy in 'train_loss,valid_loss,accuracy': where others say of what they are, and it does
    not, it was measured with the validation.

    Not a loss, which scripts print of each batch, and nothing that stands in rows without a validation.
    """
    of = {
        split: [name for name, metric in metrics.items() if metric.split == split] for split in ("train", "validation")
    }
    if not of["train"] or not of["validation"]:
        return []
    validated = {metrics[name].metric for name in of["validation"]}
    unnamed = [
        name
        for name, metric in metrics.items()
        if metric.split is None and not names.is_loss(metric.metric) and metric.metric not in validated
    ]
    if not unnamed:
        return []
    is_validated = ~np.isnan(np.array([sheet.columns[name] for name in of["validation"]])).all(axis=0)
    return [name for name in unnamed if not (~np.isnan(sheet.columns[name]) & ~is_validated).any()]
