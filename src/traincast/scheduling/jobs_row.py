"""One row of a file of jobs, and what is wrong with it in one sentence."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from traincast.errors import FileFormatError, InputError
from traincast.lognormal import log_sd_of
from traincast.scheduling.job import Job

_MOST = 1e15  # epochs, samples, devices: nobody has more, and products of a few stay what a float holds


@dataclass(frozen=True, slots=True)
class Row:
    """Cells by column; a short row has None for what it lacks."""

    path: Path
    line: int
    cells: Mapping[str, str | None]

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """What is wrong with a job is told with the line that it comes from."""
        try:
            yield
        except InputError as error:
            raise self.wrong(str(error).rstrip(".")) from None

    def wrong(self, what: str) -> FileFormatError:
        return FileFormatError(f"'{self.path}', line {self.line}: {what}.")

    def has(self, column: str) -> bool:
        return bool((self.cells.get(column) or "").strip())

    def text(self, column: str) -> str:
        if not self.has(column):
            raise self.wrong(f"{column} is missing")
        return str(self.cells[column]).strip()

    def number(self, column: str) -> float:
        text = self.text(column)
        try:
            number = float(text)
        except ValueError:
            raise self.wrong(f"{column} is '{text}', not a number") from None
        if not math.isfinite(number):
            raise self.wrong(f"{column} is {number}: it should be finite")
        return number

    def numbers(self, column: str) -> tuple[float, ...]:
        """Several in one cell, with spaces between them."""
        try:
            found = tuple(float(part) for part in self.text(column).split())
        except ValueError:
            raise self.wrong(f"{column} is '{self.text(column)}', not numbers with spaces between them") from None
        if not all(math.isfinite(number) for number in found):
            raise self.wrong(f"{column} has a number that is not finite")
        return found

    def whole(self, column: str) -> int:
        number = self.number(column)
        if not number.is_integer() or not 1 <= number <= _MOST:
            raise self.wrong(f"{column} is {self.text(column)}: it should be a whole number from 1 to {_MOST:g}")
        return int(number)

    def seconds(self, column: str) -> float:
        """Of a job, so above 0."""
        seconds = self.number(column)
        if seconds <= 0:
            raise self.wrong(f"a job of {seconds:g} s: {column} should be above 0")
        return seconds

    def submit_s(self, column: str, before: Sequence[Job]) -> float:
        """Not before those of the rows above."""
        submit_s = self.number(column)
        if submit_s < 0:
            raise self.wrong(f"{column} is {submit_s:g}: it should be 0 or later")
        if before and submit_s < before[-1].submit_s:
            raise self.wrong(
                f"{column} is {submit_s:g}, earlier than the line before ({before[-1].submit_s:g}): jobs should "
                "be in the order of submission"
            )
        return submit_s

    def moment_s(self, column: str) -> float:
        """A date and time; one that names no time zone is read as UTC."""
        text = self.text(column)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self.wrong(f"'{text}' is not a time such as 2017-10-09 07:01:55") from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    @property
    def work_sigma(self) -> float | None:
        """How uncertain the number of steps is: its p10 and p90 lie 2.56 standard deviations of the logarithm apart."""
        if not (self.has("steps_p10") or self.has("steps_p90")):
            return None
        low, high = self.number("steps_p10"), self.number("steps_p90")
        if not 0 < low <= high:
            raise self.wrong(f"steps_p10 is {low:g} and steps_p90 {high:g}: they should be above 0 and rise")
        return log_sd_of(low, high)
