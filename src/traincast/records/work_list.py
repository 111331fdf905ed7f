"""The tasks of a campaign that are left to do, shared through the store with whoever else works on them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from traincast.records.claims import claim, release
from traincast.records.record import Record, Settings, task_key
from traincast.records.store import Store, insert


@dataclass(frozen=True, slots=True)
class Task:
    """One question of a campaign: `settings` is all that decides what is run."""

    kind: str
    settings: Settings

    @property
    def key(self) -> str:
        return task_key(self.kind, self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a campaign is. `n_failed` of those done could not be done, now or before; others did `n_elsewhere`."""

    n_tasks: int
    n_before: int
    n_now: int
    n_elsewhere: int
    n_failed: int

    @property
    def n_done(self) -> int:
        return self.n_before + self.n_now + self.n_elsewhere

    @property
    def n_left(self) -> int:
        return self.n_tasks - self.n_done


class WorkList:
    """`take` claims a task, then `finish` stores what came out, or `give_back` leaves it to others.

    With `retry_failed` those that failed before this list was made are done again, once.
    """

    def __init__(self, tasks: Iterable[Task], store: Store, *, campaign: str, retry_failed: bool = False) -> None:
        self._store, self._campaign, self._retry_failed = store, campaign, retry_failed
        self._started_s = time.time()
        by_key = {task.key: task for task in tasks}
        stored = store.keys(campaign=campaign) & by_key.keys()
        failed = store.keys(campaign=campaign, failed=True) & by_key.keys()
        before = stored - failed if retry_failed else stored
        self._left = deque((key, task) for key, task in by_key.items() if key not in before)
        self._taken: dict[str, Task] = {}
        self._n_tasks, self._n_before, self._n_now, self._n_elsewhere = len(by_key), len(before), 0, 0
        self._n_failed = len(failed & before)

    @property
    def progress(self) -> Progress:
        return Progress(
            n_tasks=self._n_tasks,
            n_before=self._n_before,
            n_now=self._n_now,
            n_elsewhere=self._n_elsewhere,
            n_failed=self._n_failed,
        )

    @property
    def is_done(self) -> bool:
        """Whether every task has a record."""
        return not self._left and not self._taken

    def take(self) -> Task | None:
        """The next task that is ours to do; None where others are at all that is left."""
        for _ in range(len(self._left)):
            key, task = self._left.popleft()
            with self._store.transaction() as connection:
                done_elsewhere = self._stored_by_others(connection, key)
                is_ours = not done_elsewhere and claim(connection, self._campaign, key)
            if is_ours:
                self._taken[key] = task
                return task
            if done_elsewhere:
                self._n_elsewhere += 1
            else:
                self._left.append((key, task))
        return None

    def finish(self, record: Record) -> None:
        """Store the record of a task that was taken."""
        with self._store.transaction() as connection:
            is_new = insert(connection, record, self._campaign)
            release(connection, self._campaign, record.key)
        del self._taken[record.key]
        self._n_now += is_new
        self._n_elsewhere += not is_new
        self._n_failed += is_new and record.error is not None

    @property
    def taken(self) -> tuple[Task, ...]:
        """Those that were taken and not finished."""
        return tuple(self._taken.values())

    def give_back(self, tasks: Iterable[Task]) -> None:
        """Free tasks that were taken: somebody, perhaps we, will do them later."""
        keys = [task.key for task in tasks]
        self._left.extendleft((key, self._taken.pop(key)) for key in keys)
        with self._store.transaction() as connection:
            for key in keys:
                release(connection, self._campaign, key)

    def _stored_by_others(self, connection: Any, key: str) -> bool:
        found = connection.execute(
            "SELECT failed, created_s FROM records WHERE campaign = ? AND key = ?", (self._campaign, key)
        ).fetchone()
        if found is None:
            return False
        return not (self._retry_failed and found[0] and found[1] < self._started_s)
