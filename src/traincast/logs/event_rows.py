"""Events of TensorBoard as rows of one counter.

Every tag has a counter of its own there. Most scripts number the training loss by steps and the validation by epochs:
such a tag is known by how far its numbers are from those that the others had at the same time, and is placed by that
time. Keras says itself which of its tags count epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traincast.errors import NothingLoggedError
from traincast.logs import names
from traincast.logs.event_files import Event, EventFiles, events_in
from traincast.logs.sheet import RowCollector, Sheet

_SAME = (0.6, 1.7)  # of the steps that others had at the same time: a counter between these is theirs
_BY_EPOCH = ("epoch_", "train_epoch_", "validation_epoch_", "test_epoch_")


def event_sheets(paths: list[Path], root: Path, known: EventFiles) -> tuple[list[Sheet], list[str]]:
    """The numbers of all files; a column 'run' where folders beside each other are runs."""
    events, remarks = events_in(paths, root, known)
    if not events:
        raise NothingLoggedError(f"'{root}' has no scalars in its events, and only scalars can be read.")
    runs = list(dict.fromkeys(event.run for event in events))
    sheets = []
    for run in runs:
        own = [event for event in events if event.run == run]
        placed, told = _on_one_counter(own)
        sheets.append(_sheet(placed, run if len(runs) > 1 else None))
        remarks += told if len(runs) == 1 else []
    return sheets, remarks


def _sheet(events: Sequence[Event], run: str | None) -> Sheet:
    rows = RowCollector()
    words = {} if run is None else {"run": run}
    for event in events:
        counter = "epoch" if _counts_epochs(event.column) else "step"
        rows.add({event.column: event.value, counter: event.step, "wall_time": event.wall_s}, words)
    return rows.sheet()


def _counts_epochs(column: str) -> bool:
    return names.plain(column).startswith(_BY_EPOCH)


def _on_one_counter(events: Sequence[Event]) -> tuple[list[Event], list[str]]:
    """All steps by the counter of the tag that has most of them."""
    by_tag: dict[str, list[Event]] = {}
    for event in events:
        if not _counts_epochs(event.column):
            by_tag.setdefault(event.column, []).append(event)
    if len(by_tag) < 2:
        return list(events), []
    most = max(by_tag.values(), key=lambda own: (names.metric_of(own[0].column) is not None, len(own), own[-1].step))
    clock, steps = (np.array([getattr(event, name) for event in most]) for name in ("wall_s", "step"))
    others = {}
    for column, own in by_tag.items():
        at = np.interp([event.wall_s for event in own], clock, steps)
        ratio = float(np.median((np.array([event.step for event in own]) + 1) / (at + 1)))
        if len(clock) > 1 and clock[-1] > clock[0] and not _SAME[0] < ratio < _SAME[1]:
            others[column] = dict(zip(map(id, own), at.tolist(), strict=True))
    remarks = [
        f"'{column}' counts something other than '{most[0].column}': its values are placed by time."
        for column in others
        if names.metric_of(column) is not None
    ]
    placed = [
        event
        if event.column not in others
        else Event(event.run, event.wall_s, round(others[event.column][id(event)]), event.column, event.value)
        for event in events
    ]
    return placed, remarks
