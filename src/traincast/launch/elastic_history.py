"""What the events of a scheduler say about its jobs: how often each was started, what it had, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from traincast.launch.elastic_events import BEGIN, END, START, Event, EventLog
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST

ORPHANED = "orphaned"  # its scheduler died, and its workers with it
MOST_FRUITLESS = 5  # starts in a row that died without getting further


class Stay(NamedTuple):
    """A job on so many devices, from a start to the end of its workers."""

    since_s: float
    until_s: float
    n_devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """One job's life so far, in seconds since the scheduler was first started; None where it has not come to it."""

    name: str
    submit_s: float
    planned_finish_s: float  # by the simulation of the same policy, before anything ran
    start_s: float | None
    expected_finish_s: float | None  # at its last start
    finish_s: float | None
    stays: tuple[Stay, ...]
    n_lost: int
    error: str

    @property
    def devices(self) -> tuple[int, ...]:
        """Of each start."""
        return tuple(stay.n_devices for stay in self.stays)

    @property
    def completion_s(self) -> float | None:
        return None if self.finish_s is None else self.finish_s - self.submit_s

    def to_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        stays = [stay._asdict() for stay in self.stays]
        return own | {"stays": stays, "devices": self.devices, "completion_s": self.completion_s}


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
        finish_s=_ended_s(last) if last is not None and last.values["how"] == FINISHED else None,
        stays=tuple(
            Stay(start.now_s, _ended_s(end), start.values["n_devices"])
            for start, end in zip(starts, ends, strict=False)  # one that still runs has no end
        ),
        n_lost=sum(event.values["how"] in (LOST, ORPHANED) for event in ends),
        error=last.values["why"] if last is not None and last.values["how"] == FAILED else "",
    )


def _ended_s(end: Event) -> float:
    """When its workers ended, which is told a little later."""
    ended_s: float = end.values.get("ended_s", end.now_s)
    return ended_s


def is_over(ends: Sequence[Event]) -> bool:
    """Finished, or given up."""
    return bool(ends) and ends[-1].values["how"] in (FINISHED, FAILED)


def is_fruitless(ends: Sequence[Event]) -> bool:
    """Whether its workers died so many times in a row without one step more. Deaths of the scheduler do not count."""
    last = [event for event in ends if event.values["how"] != ORPHANED][-MOST_FRUITLESS:]
    all_lost = len(last) == MOST_FRUITLESS and all(event.values["how"] == LOST for event in last)
    return all_lost and last[-1].values["step"] <= last[0].values["step"]
