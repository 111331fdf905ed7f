"""Which format a log has: by what is in it, not by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from traincast.errors import FileFormatError, NothingLoggedError
from traincast.logs import names
from traincast.logs.blank_tables import header_of_mlflow
from traincast.logs.event_files import event_paths, is_event_file
from traincast.logs.json_rows import without_word
from traincast.logs.mlperf_rows import IS_MLPERF
from traincast.logs.opening import open_log, undamaged, what_else

FORMATS = ("csv", "jsonl", "json", "trainer_state", "tensorboard", "wandb", "mlperf", "text")
LINE_FORMATS = ("csv", "jsonl", "wandb", "mlperf", "text")
_LIST_BY_NAME = re.compile(rb'\{\s*"[^"]*"\s*:\s*\[\s*[-\d.]')  # {"loss": [2.5, as the history of Keras begins
_START_BYTES = 1 << 16
_WITH_NUMBER = re.compile(r"[\s(\[]\d|[=:{}]")


def format_of(path: Path, pattern: str | None = None, columns: Collection[str] = ()) -> str:
    """One of `FORMATS`, but "csv" and "jsonl" for W&B's: its columns tell it later. `columns` are names of some."""
    if path.is_dir():
        event_paths(path)
        return "tensorboard"
    start = _start_of(path)
    if not start.strip(b" \t\r\n\0"):
        raise NothingLoggedError(f"'{path}' is empty: nothing has been logged yet.")
    if is_event_file(start):
        return "tensorboard"
    if (kind := what_else(start)) is not None:
        raise FileFormatError(f"'{path}' is {kind}, not a readable log.")
    start = start.replace(b"\0", b"")
    if pattern is not None:
        return "text"
    if start.lstrip()[:1] == b"[" and start.lstrip(b" \t\r\n[")[:1] == b"{":
        return "json"
    return text_format_of(start, columns)


def text_format_of(start: bytes, columns: Collection[str] = ()) -> str:
    """The format of text by its first lines."""
    if IS_MLPERF.search(start):
        return "mlperf"
    stripped = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if _LIST_BY_NAME.match(stripped):
        return "json"
    if stripped.startswith(b"{") and (b'"log_history"' in start or stripped.split(b"\n", 1)[0].strip() == b"{"):
        return "trainer_state"
    if any(_is_object(without_word(line)) for line in stripped.split(b"\n", 10)[:10]):
        return "jsonl"
    return "csv" if _is_table(start, columns) else "text"


def _is_object(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_table(start: bytes, columns: Collection[str]) -> bool:
    """A first line of names, of which one is known or all have a number below them, and as many cells in the next."""
    lines = [line for line in start.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip()]
    if lines and lines[0].lower().startswith("sep="):  # which Excel likes to be told
        lines.pop(0)
    while lines and lines[0].startswith("#") and not any(mark in lines[0] for mark in ",;\t"):
        lines.pop(0)
    if len(lines) > 1 and _is_parted_by_blanks(lines[0].split(), lines[1].split(), columns):
        return True
    for mark in (",", "\t", ";"):
        cells = [cell.strip(" \"'#") for cell in lines[0].split(mark)] if lines else []
        if len(cells) < 2:
            continue
        if any(cell in columns or _is_column(cell) for cell in cells) or _are_numbers(cells):
            return len(lines) < 2 or lines[1].count(mark) >= len(cells) - 1
        if len(lines) > 1 and len(below := lines[1].split(mark)) == len(cells) and _are_numbers(below):
            return True
    return False


def _is_parted_by_blanks(names_above: list[str], below: list[str], columns: Collection[str]) -> bool:
    """Words above as many numbers; two of them are columns, so that it is no sentence. Or what MLflow writes."""
    if header_of_mlflow(names_above, "") and header_of_mlflow(below, ""):
        return True
    n_known = sum(name in columns or _is_column(name) for name in names_above)
    return n_known > 1 and len(names_above) == len(below) and _are_numbers(below[:-1])  # fastai ends with '00:12'


def _is_column(cell: str) -> bool:
    """The name of a column, not a name with its number: 'loss 0.53', 'loss=0.53'."""
    if _WITH_NUMBER.search(cell):
        return False
    known = {*names.STEP_NAMES, *names.EPOCH_NAMES, *names.CLOCK_NAMES}
    return names.plain(cell) in known or names.known_metric_of(cell) is not None


def _are_numbers(cells: list[str]) -> bool:
    try:
        return all(float(cell) is not None for cell in cells)
    except ValueError:
        return False


def _start_of(path: Path) -> bytes:
    with open_log(path) as file, undamaged(path):
        return file.read(_START_BYTES)


def is_undecided(path: Path) -> bool:
    """Whether a text has less than two whole lines, by which its format could still be another."""
    if path.is_dir():
        return False
    start = _start_of(path)
    is_clear = start.lstrip().startswith((b"{", b"[")) or what_else(start) or IS_MLPERF.search(start)
    return start.count(b"\n") < 2 and not is_clear
