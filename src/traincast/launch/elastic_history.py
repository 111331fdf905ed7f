"""What the events of a scheduler say about its jobs: how often each was started, what it had, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traincast.launch.elastic_events import BEGIN, END, START, Event, EventLog
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST

ORPHANED = "orphaned"  # its scheduler died, and its workers with it
MOST_FRUITLESS = 5  # starts in a row that died without getting further


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """One job's life so far, in seconds since the scheduler was first started; None where it has not come to it."""

    name: str
    submit_s: float
    planned_finish_s: float  # by the simulation of the same policy, before anything ran
    start_s: float | None
    expected_finish_s: float | None  # at its last start
    finish_s: float | None
    devices: tuple[int, ...]  # of each start
    n_lost: int
    error: str

    @property
    def completion_s(self) -> float | None:
        return None if self.finish_s is None else self.finish_s - self.submit_s

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"completion_s": self.completion_s}


def outcome_of(log: EventLog, name: str, submit_s: float) -> JobOutcome:
    """Of one job."""
    starts, ends = log.of_job(name, START), log.of_job(name, END)
    last = ends[-1] if ends else None
    planned = next(event for event in log.events if event.what == BEGIN).values["planned_finish_s"]
    return JobOutcome(
        name=name,
        submit_s=submit_s,
        planned_finish_s=planned[name],
        start_s=starts[0].now_s if starts else None,
        expected_finish_s=starts[-1].values["expected_finish_s"] if starts else None,
        finish_s=last.values.get("ended_s", last.now_s)
        if last is not None and last.values["how"] == FINISHED
        else None,
        devices=tuple(event.values["n_devices"] for event in starts),
        n_lost=sum(event.values["how"] in (LOST, ORPHANED) for event in ends),
        error=last.values["why"] if last is not None and last.values["how"] == FAILED else "",
    )


def is_over(ends: Sequence[Event]) -> bool:
    """Finished, or given up."""
    return bool(ends) and ends[-1].values["how"] in (FINISHED, FAILED)


def is_fruitless(ends: Sequence[Event]) -> bool:
    """Whether its workers died so many times in a row without one step more. Deaths of the scheduler do not count."""
    last = [event for event in ends if event.values["how"] != ORPHANED][-MOST_FRUITLESS:]
    all_lost = len(last) == MOST_FRUITLESS and all(event.values["how"] == LOST for event in last)
    return all_lost and last[-1].values["step"] <= last[0].values["step"]
