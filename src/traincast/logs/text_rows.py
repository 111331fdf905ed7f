"""Plain-text logs, with a pattern or with what we can guess."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traincast.errors import InputError, NothingLoggedError
from traincast.logs import gate, names
from traincast.logs.line_facts import LineFacts
from traincast.logs.progress_bars import ProgressBars
from traincast.logs.sheet import Facts, RowCollector, Sheet
from traincast.logs.text_lines import facts_of, pattern_facts

_TITLE = re.compile(r"\W*(?:[A-Za-z]+\W+){0,3}[A-Za-z]+\s*:\s*")  # a few words, no number and a colon
_LONGEST_TITLE = 48
# Lines in a row without a letter, or a sign that is in a counter or a clock, say nothing; a title ends at the second.
_BARE_LINES = re.compile(rb"\n(?:[^\sA-Za-z_:/%|\]\x80-\xff][^\r\nA-Za-z_:/%|\]\x80-\xff]{0,40}+\n){3,}+")
_TWO_BARE_LINES = b"\n0\n0\n"
_MOST_IN_VAIN = 2_000_000  # lines in a row that say nothing: what comes then is no log
_FIRST_NUMBER = "#"  # of a line: its step, if nothing else says that and it goes up
_HALF_DAY_S = 43_200.0
_SOME_DAY_S = 1e9  # since 1970
_EVALUATED = ("validation_", "test_")


class TextReader:
    """Reads whole lines as they come. A line without a step or an epoch is at those of the lines before it."""

    def __init__(self, path: str, pattern: str | None = None, metric: str | None = None) -> None:
        """`metric` is what is asked for: numbers of such a name are read, whatever it is."""
        self._path = path
        self._asked = "" if metric is None else names.plain(metric)
        self._pattern = None if pattern is None else _compiled(pattern)
        self._rows = RowCollector()
        self._bars = ProgressBars()
        self._epoch: float | None = None
        self._step: float | None = None
        self._time_s: float | None = None  # of the line that said where the log is
        self._day_s = self._dated_s = _SOME_DAY_S  # of lines with a time of day alone
        self._title: str | None = None  # of which split the lines below are
        self._whole_epoch: float | None = None  # as written, where lines say how much of it is done
        self._is_epoch_from_zero = False
        self._has_parts = False
        self._totals: dict[str, float] = {}
        self._has_steps_in_epochs = False
        self._n_ran_on = 0  # turns of epochs at which the step ran on, less those at which it began again
        self._n_matched = self._n_in_vain = 0
        self._n_percent = 0

    def feed(self, data: bytes) -> None:
        if self._n_in_vain > _MOST_IN_VAIN:
            return
        if self._pattern is None:
            data = _BARE_LINES.sub(_TWO_BARE_LINES, data)
        lines = (line for line in re.split(r"[\r\n]+", data.decode("utf-8", "replace")) if line.strip())
        self._take(self._facts(lines) if self._pattern is None else pattern_facts(self._pattern, lines))

    def _facts(self, lines: Iterator[str]) -> Iterator[LineFacts]:
        """A title such as 'Test Error:' says of what the next line is, and those below that are indented."""
        is_first = False
        for line in lines:
            if len(line) < _LONGEST_TITLE and _TITLE.fullmatch(line) and (split := names.split_of(line)):
                self._title, is_first = split, True
                continue
            if not is_first and not line[0].isspace():
                self._title = None
            is_first = False
            found = facts_of(line, self._asked, self._title)
            if self._title is not None and found.has_counter:
                self._title = None  # the log goes on
                found = facts_of(line, self._asked)
            yield found

    def _take(self, facts: Iterator[LineFacts]) -> None:
        for found in facts:
            self._n_matched += 1
            self._n_in_vain = self._n_in_vain + 1 if found.is_empty else 0
            if self._n_in_vain > _MOST_IN_VAIN:
                return
            self._n_percent += found.n_percent
            numbers = dict(found.numbers)
            if found.time_of_day_s is not None:
                numbers["timestamp"] = self._dated(found.time_of_day_s)
            self._place(numbers, found)
            if found.bar is not None:
                self._bars.draw(*found.bar)
            if not (found.has_metric or (found.has_rate and self._step is not None)):
                continue
            self._bars.add_row()
            for name, value in (("step", self._step), ("epoch", self._epoch), ("timestamp", self._time_s)):
                if value is not None:
                    numbers.setdefault(name, value)
            if found.first_number is not None:
                numbers[_FIRST_NUMBER] = found.first_number
            self._rows.add(numbers)

    def _dated(self, time_of_day_s: float) -> float:
        """On some day, and on the next one when it is midnight."""
        since_s = self._day_s + time_of_day_s
        if since_s < self._dated_s - _HALF_DAY_S:
            self._day_s += 2 * _HALF_DAY_S
            since_s += 2 * _HALF_DAY_S
        self._dated_s = since_s
        return since_s

    def _place(self, numbers: dict[str, float], found: LineFacts) -> None:
        """Remembers where in the run the log is."""
        if found.is_evaluation and found.totals.get("step") != self._totals.get("step", found.totals.get("step")):
            found.totals.pop("step", None)
            numbers.pop("step", None)  # it counts the batches of an evaluation
        if found.has_counter and ("timestamp" in numbers or numbers.get("step") != self._step):
            self._time_s = numbers.get("timestamp")
        self._has_parts |= found.is_within
        if self._has_parts and not found.is_within and any(name.startswith("train_") for name in numbers):
            numbers.pop("step", None)  # fairseq's means of an epoch, with the step at which it ended
        before = self._epoch, self._step
        if "epoch" in numbers:
            self._epoch = self._whole_epoch = numbers["epoch"]
            self._is_epoch_from_zero |= self._epoch == 0
            if self._epoch.is_integer():  # where epochs have a fraction, steps run through
                self._step = None
        self._place_within(numbers, found)
        if "step" in numbers:
            self._step = numbers["step"]
            self._has_steps_in_epochs |= self._epoch is not None and self._epoch.is_integer()
            if before[0] is not None and before[1] is not None and self._epoch != before[0]:
                self._n_ran_on += 1 if self._step > before[1] else -1
        for name, total in found.totals.items():
            self._totals[name] = max(total, self._totals.get(name, 0.0))

    def _place_within(self, numbers: dict[str, float], found: LineFacts) -> None:
        """Where lines say how much of the epoch is done; an evaluation comes when all of it is."""
        if self._whole_epoch is None or self._step is not None or "step" in numbers:
            return
        done = found.sample_fraction
        is_within = self._epoch is not None and not self._epoch.is_integer()
        if done is None and is_within and any(name.startswith(_EVALUATED) for name in numbers):
            done = 1.0
        if done is not None:
            self._epoch = numbers["epoch"] = self._whole_epoch - (not self._is_epoch_from_zero) + done

    def resume(self) -> None:
        self._rows.resume()

    def sheets(self) -> list[Sheet]:
        if self._pattern is not None and not self._n_matched:
            raise NothingLoggedError(f"The pattern '{self._pattern.pattern}' matches no line of '{self._path}'.")
        if not self._rows.n_rows:
            raise NothingLoggedError(
                f"'{self._path}' has no line with a recognisable loss or accuracy: give a pattern with named "
                r"groups, such as 'step (?P<step>\d+) .*loss (?P<loss>[\d.]+)'."
            )
        sheet = _numbered(self._rows.sheet())
        return [sheet if "step" in sheet.columns else self._bars.numbered(sheet)]

    @property
    def facts(self) -> Facts:
        steps, epochs = (gate.amount(self._totals.get(name)) for name in ("step", "epoch"))
        in_epoch = steps if self._has_steps_in_epochs and self._n_ran_on <= 0 else None
        total = steps if in_epoch is None else None
        if steps is None and self._step is None:
            in_epoch = self._bars.in_epoch if self._epoch is not None and self._epoch.is_integer() else None
            total = self._bars.whole
        return Facts(steps_per_epoch=in_epoch, total_steps=gate.whole(total), n_epochs=epochs)

    @property
    def remarks(self) -> list[str]:
        found = ["Accuracies are in percent and are converted to fractions."] if self._n_percent else []
        if self._n_in_vain > _MOST_IN_VAIN:
            found.append(f"Everything after {_MOST_IN_VAIN:,} consecutive lines without a value is left out.")
        return found


def _numbered(sheet: Sheet) -> Sheet:
    """With the numbers at the start of the lines as steps, where these go up and nothing else says where a line is."""
    first = sheet.columns.get(_FIRST_NUMBER)
    if first is None:
        return sheet
    known = first[~np.isnan(first)]
    is_counter = len(known) == sheet.n_rows and (np.diff(known) >= 0).all() and len(np.unique(known)) > len(known) / 2
    if not is_counter or "step" in sheet.columns or "epoch" in sheet.columns:
        return sheet.without(_FIRST_NUMBER)
    return replace(sheet.without(_FIRST_NUMBER), columns={**sheet.without(_FIRST_NUMBER).columns, "step": first})


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"The pattern '{pattern}' is not a regular expression: {error}.") from None
    if not compiled.groupindex:
        raise InputError(f"The pattern '{pattern}' has no named group: write what it captures as '(?P<loss>...)'.")
    if not any(names.metric_of(name) for name in compiled.groupindex):
        named = ", ".join(compiled.groupindex)
        raise InputError(f"The pattern '{pattern}' captures {named}, but neither a loss nor an accuracy.")
    return compiled
