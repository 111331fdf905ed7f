"""Tables whose cells are parted by blanks: what fastai prints, and the files of MLflow, which have no header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_BLANKS = re.compile(rb"[ \t]+")
_AT_ENDS = re.compile(rb"(?m)^\t|\t\r?$")
_SINCE_1970_MS = 1e11
_MLFLOW_CELLS = 3  # the time, the value and the step


def tabbed(data: bytes) -> bytes:
    """The same lines with one tab between cells."""
    return _AT_ENDS.sub(b"", _BLANKS.sub(b"\t", data))


def header_of_mlflow(cells: Sequence[str], path: str) -> list[str] | None:
    """The columns of a file that is called like its metric and has a time in each line; None where it is none."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    if len(numbers) != _MLFLOW_CELLS or numbers[0] < _SINCE_1970_MS or not numbers[2].is_integer():
        return None
    return ["timestamp", PurePath(path).name, "step"]
