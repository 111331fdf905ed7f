"""The tables of jobs and of their measured steps: rows that know their line, and columns that all mean something."""

from __future__ import annotations

import csv
import difflib
import gzip
import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

from traincast.errors import FileFormatError, InputError
from traincast.report.input_files import not_utf8, regular
from traincast.scheduling.jobs_row import Row

_MOST_ROWS = 200_000  # twice those of Philly; a small gzip file can unpack to any number
_NEAR = 0.75  # how alike two names of columns are that are taken for one another


@dataclass(frozen=True, slots=True)
class Form:
    """The columns that jobs of one kind need and may have.

    Tables that others recorded (`is_foreign`) have columns of which we know nothing; there only those are refused that
    look like one of ours.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    is_foreign: bool = False

    def check(self, path: Path, columns: Sequence[str]) -> None:
        """Raises for a column that would be passed over: a misspelt one changes what is asked."""
        known = (*self.needed, *self.optional)
        for column in columns:
            near = _near(column, [name for name in known if name not in columns])
            if column in known or (self.is_foreign and not near):
                continue
            meant = f"did you mean '{near}'?" if near else f"known here are {', '.join(known)}."
            raise FileFormatError(f"'{path}' has a column '{column}' that does not apply to such jobs: {meant}")


def read_rows(path: Path) -> tuple[Sequence[str], list[Row]]:
    """Names of the columns, and the rows with the lines they end on."""
    try:
        with _open(regular(path)) as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            columns = [name.strip() for name in reader.fieldnames or ()]
            reader.fieldnames = columns
            rows = [Row(path, reader.line_num, cells) for cells in itertools.islice(reader, _MOST_ROWS + 1)]
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise FileFormatError(f"'{path}' {not_utf8(error.object)}.") from None
    except (csv.Error, EOFError, zlib.error) as error:
        raise FileFormatError(f"'{path}' is not a CSV file: {error}.") from None
    if len(rows) > _MOST_ROWS:
        raise FileFormatError(f"'{path}' has more than {_MOST_ROWS:,} rows: cut it into parts.")
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"'{path}' has two columns '{twice}'.")
    for row in rows:
        if None in row.cells:
            raise row.wrong(f"it has more cells than the {len(columns)} columns of the first line")
    return columns, rows


def form_of(path: Path, columns: Sequence[str], forms: Sequence[Form]) -> Form:
    """The first of the forms whose columns are all there, and nothing besides; the plainest form is the last."""
    found = next((form for form in forms if set(form.needed) <= set(columns)), None)
    if found is not None:
        found.check(path, columns)
        return found
    misspelt = [(name, near) for form in forms for name, near in _misspelt(form, columns)]
    if misspelt:
        name, near = misspelt[0]
        raise FileFormatError(f"'{path}' has no column '{name}': its column '{near}' should be named so.")
    needed = "; or ".join(", ".join(form.needed) for form in reversed(forms))
    raise FileFormatError(f"'{path}' has the columns {', '.join(columns) or 'none'}, but jobs need {needed}.")


def check_names(column: str, rows: Sequence[Row]) -> None:
    """Raises for a name that another row has."""
    lines: dict[str, int] = {}
    for row in rows:
        name = row.text(column)
        if name in lines:
            raise row.wrong(f"a second job '{name}', as on line {lines[name]}: each needs a name of its own")
        lines[name] = row.line


def _misspelt(form: Form, columns: Sequence[str]) -> list[tuple[str, str]]:
    """The one column that a table lacks of a form, with one of its own that looks like it."""
    missing = [name for name in form.needed if name not in columns]
    others = [name for name in columns if name not in (*form.needed, *form.optional)]
    near = _near(missing[0], others) if len(missing) == 1 else None
    return [] if near is None else [(missing[0], near)]


def _near(name: str, known: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)), None)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", newline="", encoding="utf-8-sig"))
    return path.open(newline="", encoding="utf-8-sig")
