"""What a scheduler of real jobs has done, event by event, in a store: one that is started again goes on from it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traincast.errors import StoreError
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.store import Store

KIND, CAMPAIGN = "schedule-event", "elastic"
BEGIN, START, END = "begin", "start", "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`now_s` counts from the first begin. `job` is empty for events of the scheduler itself."""

    number: int
    now_s: float
    what: str
    job: str
    values: Mapping[str, Any]


class EventLog:
    """Events are added and never changed. Each is on the disk before the next thing happens."""

    def __init__(self, store: Store, environment: Environment) -> None:
        self._store, self._environment = store, environment
        self.events: list[Event] = []
        self._of_jobs: dict[tuple[str, str], list[Event]] = {}
        records = store.records(KIND, campaign=CAMPAIGN)
        for record in records:
            self._keep(
                Event(
                    number=int(str(record.task["number"])),
                    now_s=record.values["now_s"],
                    what=str(record.task["what"]),
                    job=str(record.task["job"]),
                    values=record.values,
                )
            )
        self.begun_s = records[0].created_s - self.events[0].now_s if records else time.time()

    @property
    def now_s(self) -> float:
        """Since the scheduler was first started; the clock does not stop while there is none."""
        return max(time.time() - self.begun_s, 0.0)

    def add(self, what: str, job: str = "", **values: Any) -> Event:
        event = Event(number=len(self.events), now_s=self.now_s, what=what, job=job, values=values)
        record = Record(
            kind=KIND,
            task={"number": event.number, "what": what, "job": job},
            values={"now_s": event.now_s, **values},
            environment=self._environment,
            created_s=self.begun_s + event.now_s,
        )
        if not self._store.add(record, campaign=CAMPAIGN):
            raise StoreError(
                f"'{self._store.path}' already has an event {event.number}: another scheduler writes to it."
            )
        self._keep(event)
        return event

    def of_job(self, job: str, what: str) -> Sequence[Event]:
        """Starts or ends of a job, in their order."""
        return self._of_jobs.get((job, what), ())

    def _keep(self, event: Event) -> None:
        self.events.append(event)
        self._of_jobs.setdefault((event.job, event.what), []).append(event)
