"""Plain-text logs, with a pattern or with what we can guess."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traincast.convergence.logs import names
from traincast.convergence.logs.progress_bars import ProgressBars
from traincast.convergence.logs.sheet import Facts, RowCollector, Sheet
from traincast.convergence.logs.text_lines import LineFacts, facts_of, pattern_facts
from traincast.errors import InputError, NothingLoggedError


class TextReader:
    """Reads whole lines as they come. A line without a step or an epoch is at those of the lines before it."""

    def __init__(self, path: str, pattern: str | None = None) -> None:
        self._path = path
        self._pattern = None if pattern is None else _compiled(pattern)
        self._rows = RowCollector()
        self._bars = ProgressBars()
        self._epoch: float | None = None
        self._step: float | None = None
        self._is_epoch_from_zero = False
        self._totals: dict[str, float] = {}
        self._has_steps_in_epochs = False
        self._n_matched = 0
        self._n_percent = 0

    def feed(self, data: bytes) -> None:
        lines = (line for line in re.split(r"[\r\n]+", data.decode("utf-8", "replace")) if line.strip())
        facts = map(facts_of, lines) if self._pattern is None else pattern_facts(self._pattern, lines)
        self._take(facts)

    def _take(self, facts: Iterator[LineFacts]) -> None:
        for found in facts:
            self._n_matched += 1
            self._n_percent += found.n_percent
            numbers = dict(found.numbers)
            self._place(numbers, found)
            if found.bar is not None:
                self._bars.draw(*found.bar)
            if found.has_metric:
                self._bars.add_row()
                if self._step is not None:
                    numbers.setdefault("step", self._step)
                if self._epoch is not None:
                    numbers.setdefault("epoch", self._epoch)
                self._rows.add(numbers)

    def _place(self, numbers: dict[str, float], found: LineFacts) -> None:
        """Remembers where in the run the log is."""
        if "epoch" in numbers:
            epoch = numbers["epoch"]
            self._is_epoch_from_zero |= epoch == 0
            if found.sample_fraction is not None:
                numbers["epoch"] = epoch - (not self._is_epoch_from_zero) + found.sample_fraction
            self._epoch = numbers["epoch"]
            if epoch.is_integer():  # where epochs have a fraction, steps run through
                self._step = None
        if "step" in numbers:
            self._step = numbers["step"]
            self._has_steps_in_epochs |= self._epoch is not None and self._epoch.is_integer()
        for name, total in found.totals.items():
            self._totals[name] = max(total, self._totals.get(name, 0.0))

    def resume(self) -> None:
        self._rows.resume()

    def sheets(self) -> list[Sheet]:
        if self._pattern is not None and not self._n_matched:
            raise NothingLoggedError(f"The pattern '{self._pattern.pattern}' matches no line of '{self._path}'.")
        if not self._rows.n_rows:
            raise NothingLoggedError(
                f"'{self._path}' has no line with a loss or an accuracy that we can find: give a pattern with named "
                r"groups, such as 'step (?P<step>\d+) .*loss (?P<loss>[\d.]+)'."
            )
        sheet = self._rows.sheet()
        return [sheet if "step" in sheet.columns else self._bars.numbered(sheet)]

    @property
    def facts(self) -> Facts:
        steps, epochs = self._totals.get("step"), self._totals.get("epoch")
        in_epoch = steps if self._has_steps_in_epochs else None
        total = steps if in_epoch is None else None
        if steps is None and self._step is None:
            in_epoch = self._bars.in_epoch if self._epoch is not None and self._epoch.is_integer() else None
            total = self._bars.whole
        return Facts(steps_per_epoch=in_epoch, total_steps=None if total is None else int(total), n_epochs=epochs)

    @property
    def remarks(self) -> list[str]:
        return ["Accuracies are written in percent: they are kept as fractions."] if self._n_percent else []


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"The pattern '{pattern}' is not a regular expression: {error}.") from None
    if not compiled.groupindex:
        raise InputError(f"The pattern '{pattern}' names no group: write what it catches as '(?P<loss>...)'.")
    if not any(names.metric_of(name) for name in compiled.groupindex):
        named = ", ".join(compiled.groupindex)
        raise InputError(f"The pattern '{pattern}' catches {named}, and neither a loss nor an accuracy.")
    return compiled
