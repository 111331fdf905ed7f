"""Rows of a CSV table under one header."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from traincast.logs import gate, names
from traincast.logs.cells import value_in
from traincast.logs.growing import GrowingColumn
from traincast.logs.log import FloatArray
from traincast.logs.sheet import Sheet

_TEXT_COLUMNS = (*names.RUN_NAMES, *names.SPLIT_COLUMNS)
_USED = frozenset(
    (*names.STEP_NAMES, *names.EPOCH_NAMES, *(one for some in names.FACT_NAMES.values() for one in some), "value")
)


class Block:
    """Rows under one header."""

    def __init__(
        self,
        header: list[str],
        called: list[str],
        separator: str,
        *,
        asked: set[str],
        runs: tuple[int, ...],
        split: str | None,
    ) -> None:
        """`called` is the header as it is meant; of it is read what we know and what is `asked` for."""
        self.separator, self.header, self.split = separator, header, split
        self.resumed: list[int] = []
        self.words: dict[str, tuple[int, ...]] = {
            name: (at,) for at, name in enumerate(called) if names.plain(name) in _TEXT_COLUMNS
        }
        if runs:
            self.words["run"] = runs
        places = {name: at for at, name in enumerate(called) if name not in self.words}
        used = {name: at for name, at in places.items() if is_used(name) or name in asked}
        self.wanted = used or places  # of a table of which we know nothing, its rows are at least counted
        self.unread = tuple(name for name in called if name and name not in self.wanted and name not in self.words)
        self.columns: dict[str, GrowingColumn] = defaultdict(GrowingColumn)
        self.texts: dict[str, list[str]] = defaultdict(list)

    def expect(self, n_rows: int) -> None:
        self.columns |= {name: GrowingColumn(n_rows) for name in self.wanted}

    def append(self, name: str, values: FloatArray) -> None:
        self.columns[name].append(gate.numbers(values))

    def add(self, rows: list[list[str]]) -> None:
        for name, at in self.wanted.items():
            is_percent, has_thousands = names.is_percent(name), self.separator == ","
            cells = (row[at] if at < len(row) else "" for row in rows)
            values = [value_in(cell, has_thousands=has_thousands, keeps_percent=is_percent) for cell in cells]
            self.append(name, np.array(values, float))
        for name, places in self.words.items():
            self.texts[name] += ["/".join(row[at].strip() for at in places if at < len(row)) for row in rows]

    def is_misplaced(self, cells: Sequence[str]) -> bool:
        """Whether a row has too many cells, or too few and a fraction for its step: two writers met in one line."""
        if len(cells) >= len(self.header):
            return len(cells) > len(self.header)
        steps = [
            cells[at] for name, at in self.wanted.items() if names.plain(name) in names.STEP_NAMES and at < len(cells)
        ]
        return any(not value_in(cell).is_integer() for cell in steps if is_number(cell))

    @property
    def n_rows(self) -> int:
        some = next(iter(self.wanted), None)
        return 0 if some is None else len(self.columns[some])

    def sheet(self) -> Sheet:
        columns = {name: self.columns[name].values for name in self.wanted}
        words = {name: tuple(self.texts[name]) for name in self.words}
        resumed = tuple(sorted(set(self.resumed)))
        return Sheet(columns=columns, words=words, split=self.split, resumed=resumed, unread=self.unread)


def is_used(name: str) -> bool:
    if (panel := names.panel_of(name)) is not None:
        return not panel[1].endswith(("__MIN", "__MAX"))  # of a chart: the band about its line
    is_beside = names.clock_of([name]) is not None or names.is_rate(name) or names.is_wait(name)
    return names.plain(name) in _USED or is_beside or names.metric_of(name) is not None


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
