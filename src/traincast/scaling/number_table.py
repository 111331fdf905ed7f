"""CSV tables of numbers above 0 that people write by hand: headers with spaces, capitals and units in brackets."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from traincast.errors import FileFormatError, InputError

Aliases = Mapping[str, Sequence[str]]  # the headers, in our spelling, that mean a key
Cells = dict[str, float]  # by key; a column that means nothing to us is not there


def read_numbers(path: str | Path, aliases: Aliases) -> Iterator[tuple[str, Cells]]:
    """Each line's numbers by what they mean, with the words that name the line in an error."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"'{path}' cannot be read as a text file.") from None
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        keys = _keys(next(reader, []), aliases, str(path))
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"'{path}', line {reader.line_num}"
            if len(cells) != len(keys):
                raise FileFormatError(f"{where}: {len(cells)} cells where the header has {len(keys)}.")
            yield where, {key: _number(cell, key, where) for key, cell in zip(keys, cells, strict=True) if key}
    except csv.Error as error:
        raise FileFormatError(f"'{path}' is not a CSV table: {error} in line {reader.line_num}.") from None


def whole_number(cells: Cells, key: str, where: str) -> int:
    """A cell that counts something."""
    if not cells[key].is_integer():
        raise FileFormatError(f"{where}: {key} should be a whole number, not {cells[key]:g}.")
    return int(cells[key])


def need_one_column(cells: Cells, keys: Sequence[str], where: str) -> str:
    """The one of these keys that the table has; none or several are refused."""
    found = [key for key in keys if key in cells]
    if len(found) != 1:
        has = "none" if not found else f"{len(found)} of them"
        raise FileFormatError(f"{where}: one column should be {' or '.join(keys)}, and there is {has}.")
    return found[0]


def _keys(header: list[str], aliases: Aliases, file: str) -> list[str]:
    names = [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in header]
    keys = [next((key for key, known in aliases.items() if name == key or name in known), "") for name in names]
    for key in aliases:
        if keys.count(key) > 1:
            raise FileFormatError(f"'{file}', line 1: two columns give {key}.")
    return keys


def _number(text: str, key: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise FileFormatError(f"{where}: {key} is '{text.strip()}', not a number.") from None
    if not 0 < value < math.inf:
        raise FileFormatError(f"{where}: {key} should be above 0, not {text.strip()}.")
    return value
