"""Many tasks, unattended: each result is stored as it comes, and what is stored is not done again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from functools import lru_cache

from traincast.errors import StoreError, TraincastError
from traincast.records.environment import Environment, read_environment
from traincast.records.record import Record, Settings, Values
from traincast.records.store import DEFAULT_CAMPAIGN, Store
from traincast.records.work_list import Progress, Task, WorkList

__all__ = ["Progress", "Task", "attempt", "run_campaign"]

Run = Callable[[Settings], Values]
OnProgress = Callable[[Progress], None]
POLL_S = 0.5
_ENVIRONMENT_S = 60.0  # clocks and load change during a campaign, and reading them takes a few milliseconds


def run_campaign(
    tasks: Iterable[Task],
    run: Run,
    store: Store,
    *,
    campaign: str = DEFAULT_CAMPAIGN,
    on_progress: OnProgress | None = None,
    retry_failed: bool = False,
) -> Progress:
    """Do what is not stored yet, one task after the other, and say how many were done now, before and elsewhere.

    A task that raises a TraincastError is stored with its sentence, so that it neither stops the others nor is tried
    for ever. Anything else, Ctrl-C too, ends the campaign; the same call goes on where it stopped. Where another
    process works on the same campaign the two share the tasks, and each waits until all are done.
    """
    work = WorkList(tasks, store, campaign=campaign, retry_failed=retry_failed)
    tell = on_progress or (lambda _: None)
    tell(work.progress)
    try:
        while not work.is_done:
            task = work.take()
            if task is None:
                if not work.is_done:
                    time.sleep(POLL_S)
            else:
                work.finish(attempt(task, run))
            tell(work.progress)
    finally:
        with contextlib.suppress(StoreError):  # what ended us is what to tell; a claim left behind ends with us
            work.give_back(work.taken)
    return work.progress


def attempt(task: Task, run: Run) -> Record:
    """Do a task in this process; an error in our own words is its result."""
    values: Values
    try:
        values = run(task.settings)
    except TraincastError as error:
        values = {"error": " ".join(str(error).split())}
    environment = _environment(str(task.settings.get("device", "cpu")), int(time.monotonic() // _ENVIRONMENT_S))
    return Record(kind=task.kind, task=task.settings, values=values, environment=environment, created_s=time.time())


@lru_cache(maxsize=1)
def _environment(device: str, minute: int) -> Environment:
    """Read again when the minute has passed."""
    return read_environment(device)
