"""Small files that people write by hand, and the tables that ship with traincast: read whole, refused in a sentence."""

from __future__ import annotations

import importlib.resources
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.report.input_files import regular
from traincast.report.parsing import parse_toml


def read_text(path: str | Path, where: str) -> str:
    """The text of a file; `where` names it in a sentence, as in "Price file 'own.csv'"."""
    try:
        return regular(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{where} is not UTF-8 text.") from None
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a path with a null character
        raise InputError(f"{where} cannot be read: {error}.") from None


def read_toml(path: str | Path, where: str) -> dict[str, Any]:
    """What a TOML file holds."""
    return toml_of(read_text(path, where), where)


def toml_of(text: str, where: str) -> dict[str, Any]:
    import tomllib

    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{where} is not TOML: {str(error).rstrip('.')}.") from None


def csv_lines(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, with its number; the header is the first."""
    import csv

    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise FileFormatError(f"{where} is not a CSV table: {error} in line {reader.line_num}.") from None


def shipped_rows(name: str) -> tuple[dict[str, str], ...]:
    """Cells by column of a CSV table in traincast/data, in its own order."""
    (_, header), *lines = csv_lines(shipped_text(name), name)
    return tuple(dict(zip(header, cells, strict=True)) for _, cells in lines)


def shipped_text(name: str) -> str:
    """A file of traincast/data."""
    return importlib.resources.files("traincast").joinpath("data", name).read_text(encoding="utf-8")
