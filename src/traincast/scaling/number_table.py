"""CSV tables of numbers above 0 that people write by hand: headers with spaces, capitals and units in brackets.

Columns that mean nothing to us are left alone. A cell is read as a number when it is asked for, so one that is not
needed may hold anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traincast.errors import FileFormatError
from traincast.report.small_files import csv_lines, read_text

_MOST = 1e15  # of anything that is counted or timed; from here on products of two cells would lose their meaning
Aliases = Mapping[str, Sequence[str]]  # the headers, in our spelling, that mean a key


@dataclass(frozen=True, slots=True)
class Row:
    """A line's cells by what they mean; `where` names the line in an error."""

    where: str
    cells: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return key in self.cells

    def number(self, key: str) -> float:
        text = self.cells[key].strip()
        try:
            value = float(text)
        except ValueError:
            raise FileFormatError(f"{self.where}: {key} is '{text}', not a number.") from None
        if not 0 < value < math.inf:
            raise FileFormatError(f"{self.where}: {key} should be above 0, not {text}.")
        if not 1 / _MOST <= value <= _MOST:
            raise FileFormatError(f"{self.where}: {key} should be from {1 / _MOST:g} to {_MOST:g}, not {value:g}.")
        return value

    def whole(self, key: str) -> int:
        """A cell that counts something."""
        value = self.number(key)
        if not value.is_integer():
            raise FileFormatError(f"{self.where}: {key} should be a whole number, not {self.cells[key].strip()}.")
        return int(value)

    def one_of(self, *keys: str) -> str:
        """The one of these keys that the table has; none or several are refused."""
        found = [key for key in keys if key in self]
        if len(found) != 1:
            has = "none" if not found else f"{len(found)} of them"
            raise FileFormatError(f"{self.where}: one column should be {' or '.join(keys)}, and there is {has}.")
        return found[0]


def read_rows(path: str | Path, aliases: Aliases, *, needed: Sequence[Sequence[str]] = ()) -> Iterator[Row]:
    """Each line that is not empty. Of each group of `needed` keys the header must give at least one."""
    lines = csv_lines(read_text(path, f"'{path}'"), f"'{path}'")
    line, header = next(lines, (1, []))
    keys = _keys(header, aliases, f"'{path}', line {line}")
    _check_needed(header, keys, aliases, needed, f"'{path}', line {line}")
    for line, cells in lines:
        where = f"'{path}', line {line}"
        if len(cells) != len(keys):
            raise FileFormatError(f"{where}: {len(cells)} cells where the header has {len(keys)}.")
        yield Row(where, {key: cell for key, cell in zip(keys, cells, strict=True) if key})


def _keys(header: list[str], aliases: Aliases, where: str) -> list[str]:
    """What each column means; empty where it has no effect with us."""
    names = [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in header]
    keys = [next((key for key, known in aliases.items() if name == key or name in known), "") for name in names]
    for key in aliases:
        if keys.count(key) > 1:
            raise FileFormatError(f"{where}: two columns give {key}.")
    return keys


def _check_needed(
    header: list[str], keys: list[str], aliases: Aliases, needed: Sequence[Sequence[str]], where: str
) -> None:
    for group in needed:
        if not set(group) & set(keys):
            known = " or ".join(f"'{aliases[key][0]}'" for key in group)
            found = ", ".join(name.strip() for name in header) or "nothing"
            raise FileFormatError(f"{where}: no column for {group[0]}, such as {known}; found {found}.")
