"""A table of runs from a file: CSV with a header, or a JSON list of objects."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

from traincast.errors import FileFormatError, InputError
from traincast.report.input_files import is_there
from traincast.report.parsing import parse_json
from traincast.report.small_files import read_text

Row = Mapping[str, str]  # by lower-case name; what is not there is empty


def read_rows(path: Path) -> list[tuple[str, Row]]:
    """Each row with where it stands, for messages. Cells are as they were written, without spaces around them."""
    text = _text(path)
    lines = _json_rows(path, text) if text.lstrip().startswith(("[", "{")) else _csv_rows(path, text)
    if not lines:
        raise FileFormatError(f"'{path}' has no runs.")
    return lines


def number(where: str, name: str, text: str) -> float:
    """A cell that should be a finite number."""
    try:
        value = float(text)
    except ValueError:
        raise FileFormatError(f"{where}: {name} is '{text}', not a number.") from None
    if not math.isfinite(value):
        raise FileFormatError(f"{where}: {name} should be a finite number, not {text}.")
    return value


def _text(path: Path) -> str:
    if not is_there(path):
        raise InputError(f"There is no file '{path}'.")
    text = read_text(path, f"'{path}'")
    if "\0" in text:
        raise FileFormatError(f"'{path}' is a binary file, and should be a table.")
    return text


def _csv_rows(path: Path, text: str) -> list[tuple[str, Row]]:
    reader = csv.reader(text.splitlines())
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:  # a cell of more than 131,072 characters
        raise FileFormatError(f"'{path}' is not a CSV table: {error} in line {reader.line_num}.") from None
    if not header:
        raise FileFormatError(f"'{path}' is empty: it needs a header and one row per run.")
    lines: list[tuple[str, Row]] = []
    for line, cells in rows:
        where = f"'{path}', line {line}"
        if len(cells) != len(header):
            raise FileFormatError(f"{where}: {len(cells)} cells where the header has {len(header)}.")
        lines.append((where, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}))
    return lines


def _json_rows(path: Path, text: str) -> list[tuple[str, Row]]:
    try:
        data = parse_json(text)
    except json.JSONDecodeError as error:
        raise FileFormatError(f"'{path}' is not valid JSON: {error.msg} in line {error.lineno}.") from None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise FileFormatError(f"'{path}' should be a list of objects, one per run.")
    return [
        (
            f"'{path}', run {place}",
            {name.strip().lower(): "" if value is None else str(value).strip() for name, value in row.items()},
        )
        for place, row in enumerate(data, start=1)
    ]
