"""Settings that a folder of results belongs to: the same ones go on with it, others are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.report.files import write_file
from traincast.report.parsing import parse_json

_LONGEST_VALUE = 80  # that a sentence can hold twice


def keep_settings(path: Path, wanted: Mapping[str, Any]) -> None:
    """Makes the folder of this file one of these settings, or raises where it belongs to others."""
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not _things_in(folder):
            write_file(path, json.dumps(wanted, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"The folder '{folder}' cannot be made: {error.strerror or error}.") from error
    check_settings(path, wanted)  # asked last: another command may have begun on the folder just now


def check_settings(path: Path, wanted: Mapping[str, Any]) -> None:
    """Raises where the folder of this file belongs to other settings, and writes nothing."""
    folder = path.parent
    if not path.exists():
        if folder.is_dir() and _things_in(folder):
            raise InputError(f"'{folder}' is not empty: give an empty or a new folder.")
        return
    try:
        known = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileFormatError(f"'{path}' cannot be read as JSON: give another folder.") from error
    if not isinstance(known, dict):
        raise FileFormatError(f"'{path}' is not a file of settings: give another folder.")
    for name, value in json.loads(json.dumps(wanted)).items():
        if known.get(name) != value:
            both = f"{name} {known.get(name)}, not {value}"
            is_short = len(both) <= 2 * _LONGEST_VALUE
            raise InputError(f"'{folder}' has runs with {both if is_short else f'other {name}'}: give another folder.")


def release_settings(path: Path) -> None:
    """Gives the folder back where nothing came of them, so that others may be tried there."""
    if _things_in(path.parent) == [path.name]:
        path.unlink()


def _things_in(folder: Path) -> list[str]:
    """Hidden ones are locks and files that are half written."""
    return [place.name for place in folder.iterdir() if not place.name.startswith(".")]
