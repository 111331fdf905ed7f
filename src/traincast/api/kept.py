"""Measurements on their way into a store. Each is kept: when it was made is part of what was asked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincast.api.measuring_together import TogetherMeasurement
    from traincast.api.model_measuring import ModelMeasurement


def check_store(path: str | Path) -> None:
    """Whether records can go there: asked before minutes of measuring."""
    from traincast.records.store_file import check_store as check

    check(Path(path))


def keep(path: str | Path, answer: ModelMeasurement | TogetherMeasurement, asked: Mapping[str, Any]) -> None:
    """`asked` is what the answer itself does not know."""
    from traincast.records.identity import task_of
    from traincast.records.record import Record
    from traincast.records.store import Store

    now_s, values = time.time(), answer.values()
    task = {**task_of(values), **asked, "asked_s": now_s}
    with Store(Path(path)) as store:
        store.add(Record(kind=answer.kind, task=task, values=values, environment=answer.environment, created_s=now_s))


def keep_row(path: str | Path, row: Any, task: Mapping[str, Any]) -> None:
    """A row of a sweep; `task` is what was swept, which row it is, and when that was asked."""
    from traincast.records.environment import read_environment
    from traincast.records.identity import SWEEP, task_of
    from traincast.records.record import Record
    from traincast.records.store import Store

    measured = getattr(row, "measurement", None) or getattr(row, "epoch", None)
    environment = read_environment(task["device"]) if measured is None else measured.environment
    whole = dict(task) if measured is None else {**task, **task_of(measured.to_dict())}
    with Store(Path(path)) as store:
        store.add(Record(kind=SWEEP, task=whole, values=row.to_dict(), environment=environment, created_s=time.time()))
