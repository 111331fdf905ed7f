"""Looking at a log again and again, until the run is over or a rule says that it should be."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.convergence.alarms import silence_alarms
from traincast.convergence.asked import Asked
from traincast.convergence.stopping import N_IN_A_ROW, StopRule
from traincast.convergence.watching import asked_series, status_of
from traincast.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from traincast.cli.watch_screen import Display
    from traincast.convergence.logs.follow import LogFollower
    from traincast.convergence.logs.log import Log
    from traincast.convergence.watching import Status

OVER, STOPPED = 0, 3
_YOUNG_S = 600.0  # a file that was written within so long may still get its first rows


@dataclass(slots=True)
class Watch:
    """One log that is watched, and what was seen of it so far."""

    path: Path
    follower: LogFollower
    asked: Asked
    rule: StopRule | None
    display: Display
    status: Status | None = None
    n_held: int = 0
    changed_at_s: float = 0.0

    def once(self) -> int:
        """One look; a rule that holds now is enough."""
        log = self.follower.poll()
        if log is None:
            if self.follower.waits_for is not None:
                raise FileFormatError(self.follower.waits_for)
            raise InputError(
                f"'{self.path}' has no row yet." if self.path.exists() else f"There is no log '{self.path}'."
            )
        self._update(log)
        if self.rule is not None and self.status is not None and (missing := self.rule.missing(self.status)):
            raise InputError(missing)
        return self._stop(n_needed=1) or OVER

    def follow(self, interval_s: float) -> int:
        """Until the end."""
        while True:
            log = self.follower.poll()
            if log is None:
                self._wait()
            elif self._is_there(log):
                self._update(log)
                self._tell_what_is_missing()
            is_lost = self.status is not None and self.status.is_lost
            if (log is not None or is_lost) and (stopped := self._stop(n_needed=1 if is_lost else N_IN_A_ROW)):
                return stopped
            if self.status is not None and self.status.is_over:
                return OVER
            time.sleep(interval_s)

    def _is_there(self, log: Log) -> bool:
        """A metric may come later than the first rows, as that of a first evaluation does."""
        try:
            asked_series(log, self.asked)
        except InputError as error:
            self.display.tell(f"Waiting: {error}")
            return False
        return True

    def _update(self, log: Log) -> None:
        written_s = (self.follower.written_at_s if self.status is None else None) or time.time()
        self.changed_at_s = written_s
        self.status = status_of(log, self.asked, silent_s=time.time() - written_s)
        self.n_held = self.n_held + 1 if self.rule is not None and self.rule.holds(self.status) else 0
        self.display.update(self.status)

    def _tell_what_is_missing(self) -> None:
        """Of a rule that cannot hold: what may still come is waited for, a length that nobody says is not."""
        status = self.status
        if self.rule is None or status is None or (missing := self.rule.missing(status)) is None:
            return
        may_come = (self.asked.total_steps, self.asked.n_epochs, status.log.total_steps, status.log.n_epochs)
        if status.total_steps is None and self.rule.name == "eta_s" and all(length is None for length in may_come):
            raise InputError(missing)
        self.display.tell(f"Waiting: {missing}")

    def _wait(self) -> None:
        missing = self.follower.waits_for
        if self.status is None:
            if missing is not None and time.time() - (self.follower.written_at_s or 0.0) > _YOUNG_S:
                raise FileFormatError(missing)
            of_file = f"Waiting for {'the first rows of ' if self.path.exists() else ''}'{self.path}'."
            self.display.tell(of_file if missing is None else f"Waiting: {missing}")
            return
        silent_s = time.time() - self.changed_at_s
        silent = silence_alarms(self.status.pace, silent_s)
        others = [sentence for sentence in self.status.warnings if not sentence.startswith("Silent")]
        if silent:
            self.status = replace(self.status, warnings=(*others, *silent), silent_s=silent_s)
            self.display.update(self.status)
        if not self.path.exists():
            self.display.tell(f"Waiting: '{self.path}' is not there any more.")

    def _stop(self, *, n_needed: int) -> int:
        """The exit code that says so, or 0."""
        if self.rule is None or self.status is None or self.n_held < n_needed:
            return 0
        value = self.rule.value(self.status)
        held = f"held for {n_needed} updates" if n_needed > 1 else "holds"
        self.display.tell(f"Stopped: {self.rule} {held} ({self.rule.name} is {value:.4g}).")
        return STOPPED
