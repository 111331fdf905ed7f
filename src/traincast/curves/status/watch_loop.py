"""Looking at a log again and again, until the run is over or a rule says that it should be."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from traincast.curves.log_question import LogQuestion
from traincast.curves.status.alarms import silence_alarms
from traincast.curves.status.status import asked_series, status_of
from traincast.curves.status.stop_rule import N_IN_A_ROW, StopRule
from traincast.errors import FileFormatError, InputError, TraincastError

if TYPE_CHECKING:
    from traincast.curves.status.status import Status
    from traincast.logs.follow import LogFollower
    from traincast.logs.log import Log

OVER, STOPPED = 0, 3
_YOUNG_S = 600.0  # a file that was written within so long may still get its first rows, however strict the watch is


class Display(Protocol):
    """Where updates go. What is told beside them (waiting, the end) is a sentence."""

    def update(self, status: Status) -> None: ...
    def tell(self, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...


@dataclass(slots=True)
class Watch:
    """One log that is watched, and what was seen of it so far.

    What stands in the log never ends a watch, unless it is `strict`: by the next look it may be mended, replaced or
    longer. Where nothing can be seen, this is told.
    """

    path: Path
    follower: LogFollower
    asked: LogQuestion
    rule: StopRule | None
    interval_s: float
    display: Display
    strict: bool = False
    status: Status | None = None
    n_held: int = 0
    changed_at_s: float = 0.0
    trouble: str | None = None  # why the last look has shown nothing, until one does

    def once(self) -> int:
        """One look; a rule that holds now is enough."""
        self._refuse_rule_that_cannot_hold()
        log = self._polled()
        if log is None:
            if self.follower.waits_for is not None:
                raise FileFormatError(self.follower.waits_for)
            raise InputError(
                f"'{self.path}' has no row yet." if self.path.exists() else f"There is no log '{self.path}'."
            )
        self._update(self._status_of(log))
        if self.rule is not None and self.status is not None and (missing := self.rule.missing(self.status)):
            raise InputError(missing)
        return self._stop(n_needed=1) or OVER

    def follow(self) -> int:
        """Until the end."""
        if self.strict:
            self._refuse_rule_that_cannot_hold()
        while True:
            found = self._look()
            if found is None:
                self._wait()
            else:
                self._update(found)
                self._tell_what_is_missing(found)
            is_lost = self.status is not None and self.status.is_lost
            if (found is not None or is_lost) and (stopped := self._stop(n_needed=1 if is_lost else N_IN_A_ROW)):
                return stopped
            if self.status is not None and self.status.is_over:
                return OVER
            time.sleep(self.interval_s)

    def _look(self) -> Status | None:
        """The log as it is now; None where nothing is new, or nothing can be seen."""
        try:
            log = self._polled()
            if log is None:
                return None
            self.trouble = self._not_logged_yet(log)
            return None if self.trouble is not None else self._status_of(log)
        except TraincastError as error:
            if self.strict:
                raise
            self.trouble = str(error)
            self.n_held = 0  # the looks at which a rule holds are in a row
            return None

    def _polled(self) -> Log | None:
        try:
            return self.follower.poll()
        except OSError as error:  # a folder in its place, a disk that is away, a file that may not be read
            raise InputError(f"'{self.path}' cannot be read: {error.strerror or error}.") from None

    def _not_logged_yet(self, log: Log) -> str | None:
        """A metric may come later than the first rows, as that of a first evaluation does."""
        try:
            asked_series(log, self.asked)
        except InputError as error:
            return str(error)
        return None

    def _status_of(self, log: Log) -> Status:
        written_s = (self.follower.written_at_s if self.status is None else None) or time.time()
        found = status_of(log, self.asked, silent_s=time.time() - written_s)
        self.changed_at_s = written_s
        return found

    def _update(self, found: Status) -> None:
        self.status = found
        self.n_held = self.n_held + 1 if self.rule is not None and self.rule.holds(found) else 0
        self.display.update(found)

    def _refuse_rule_that_cannot_hold(self) -> None:
        if self.rule is not None and (lacking := self.rule.lacking(self.asked)) is not None:
            raise InputError(lacking)

    def _tell_what_is_missing(self, found: Status) -> None:
        """Of a rule that does not hold for want of something: what may still come, and what nobody will say."""
        if self.rule is None:
            return
        if (lacking := self.rule.lacking(self.asked)) is not None:
            self.display.tell(f"Warning: {lacking} Until then the rule stops nothing.")
        elif (missing := self.rule.missing(found)) is not None:
            if self.strict and not self.rule.may_come(found, self.asked):
                raise InputError(missing)
            self.display.tell(f"Waiting: {missing}")

    def _wait(self) -> None:
        if self.status is None:
            self.display.tell(f"Waiting: {self.trouble}" if self.trouble is not None else self._first_rows())
            return
        silent_s = time.time() - self.changed_at_s
        silent = silence_alarms(self.status.pace, silent_s)
        others = [sentence for sentence in self.status.warnings if not sentence.startswith("Silent")]
        if silent:
            self.status = replace(self.status, warnings=(*others, *silent), silent_s=silent_s)
            self.display.update(self.status)
        if not self.path.exists():
            gone = f"'{self.path}' no longer exists."
            if self.strict:
                raise InputError(gone)
            self.display.tell(f"Waiting: {gone}")
        elif self.trouble is not None:
            self.display.tell(f"Waiting: {self.trouble}")

    def _first_rows(self) -> str:
        """What is waited for at the start."""
        missing = self.follower.waits_for
        if missing is None:
            return f"Waiting for {'the first rows of ' if self.path.exists() else ''}'{self.path}'."
        if self.strict and time.time() - (self.follower.written_at_s or 0.0) > _YOUNG_S:
            raise FileFormatError(missing)
        return f"Waiting: {missing}"

    def _stop(self, *, n_needed: int) -> int:
        """The exit code that says so, or 0."""
        if self.rule is None or self.status is None or self.n_held < n_needed:
            return 0
        value = self.rule.value(self.status)
        held = f"held for {n_needed} updates" if n_needed > 1 else "holds"
        self.display.tell(f"Stopped: {self.rule} {held} ({self.rule.name} is {value:.4g}).")
        return STOPPED
