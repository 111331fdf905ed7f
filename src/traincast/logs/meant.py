"""Which column is meant by a name that a user writes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traincast.logs import names


def names_meant(wanted: str, known: Iterable[str]) -> list[str]:
    """By the name itself, in any case, in any spelling; else by a whole part of it, or by a piece that it has.

    'mAP50' is 'metrics/mAP50(B)' and not 'metrics/mAP50-95(B)'.
    """
    known, text, spelled = list(known), wanted.strip(), names.plain(wanted)
    low = text.lower()
    tests = (
        lambda name: name == text,
        lambda name: name.lower() == low,
        lambda name: bool(spelled) and names.plain(name) == spelled,
        lambda name: low in re.split(r"[/\\.:|() ]+", name.lower()),
        lambda name: bool(spelled) and spelled in names.plain(name),
    )
    return next((found for is_meant in tests if (found := list(filter(is_meant, known)))), [])


def is_of_kind(wanted: str, metric: str, name: str) -> bool:
    """Whether a series is what is asked for: by its metric, or by its name as the log writes it."""
    return wanted.strip().lower() in (metric, name.lower())


def columns_meant(wanted: str, columns: Iterable[str]) -> list[str]:
    """The columns that are asked for and that nothing but the question tells to be metrics."""
    columns = list(columns)
    known = {name: metric for name in columns if (metric := names.metric_of(name)) is not None}
    if any(is_of_kind(wanted, metric.metric, name) for name, metric in known.items()):
        return []
    return [name for name in names_meant(wanted, columns) if name not in known]
