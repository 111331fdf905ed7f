"""Which format a log has: by what is in it, not by its name."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from traincast.convergence.logs import names
from traincast.convergence.logs.event_files import event_paths, is_event_file
from traincast.convergence.logs.mlperf_rows import IS_MLPERF
from traincast.errors import FileFormatError, InputError, NothingLoggedError

FORMATS = ("csv", "jsonl", "trainer_state", "tensorboard", "wandb", "mlperf", "text")
LINE_FORMATS = ("csv", "jsonl", "wandb", "mlperf", "text")
_START_BYTES = 1 << 16
_WITH_NUMBER = re.compile(r"[\s(\[]\d|[=:{}]")
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what PowerShell writes


def format_of(path: Path, pattern: str | None = None) -> str:
    """One of `FORMATS`, but "csv" and "jsonl" for W&B's: its columns tell it later."""
    if path.is_dir():
        event_paths(path)
        return "tensorboard"
    start = _start_of(path)
    if not start.strip():
        raise NothingLoggedError(f"'{path}' is empty: nothing has been logged yet.")
    if is_event_file(start):
        return "tensorboard"
    if b"\0" in start:
        raise FileFormatError(f"'{path}' is a binary file, not a log that can be read.")
    if pattern is not None:
        return "text"
    if start.lstrip()[:1] == b"[" and start.lstrip(b" \t\r\n[")[:1] == b"{":
        raise FileFormatError(f"'{path}' is a JSON list: write one object a line instead.")
    return text_format_of(start)


def text_format_of(start: bytes) -> str:
    """The format of text by its first lines."""
    if IS_MLPERF.search(start):
        return "mlperf"
    stripped = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if stripped.startswith(b"{") and (b'"log_history"' in start or stripped.split(b"\n", 1)[0].strip() == b"{"):
        return "trainer_state"
    if any(_is_object(line) for line in stripped.split(b"\n", 10)[:10]):
        return "jsonl"
    return "csv" if _is_table(start) else "text"


def _is_object(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_table(start: bytes) -> bool:
    """A first line of names, at least one of which we know, and as many cells in the next."""
    lines = [line for line in start.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip()]
    while lines and lines[0].startswith("#") and not any(mark in lines[0] for mark in ",;\t"):
        lines.pop(0)
    for mark in (",", "\t", ";"):
        cells = [cell.strip(" \"'#") for cell in lines[0].split(mark)] if lines else []
        if len(cells) > 1 and (any(map(_is_column, cells)) or _are_numbers(cells)):
            return len(lines) < 2 or lines[1].count(mark) >= len(cells) - 1
    return False


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


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Says so where a gzipped file is cut off or no such file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"'{path}' is a damaged gzip file: {error}.") from None


def is_packed(path: Path) -> bool:
    """Whether its bytes are not those of its lines: gzipped, or two a character."""
    return _first_two(path) in (_GZIP, *_UTF_16)


def open_log(path: Path) -> BinaryIO:
    """The file, unpacked where it is gzipped, and in UTF-8."""
    try:
        start = _first_two(path)
        if start == _GZIP:
            return cast(BinaryIO, gzip.open(path, "rb"))
        if start in _UTF_16 and (text := _from_utf_16(path)) is not None:
            return text
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"There is no log '{path}'.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None


def _first_two(path: Path) -> bytes:
    with path.open("rb") as raw:
        return raw.read(2)


def _from_utf_16(path: Path) -> BinaryIO | None:
    """None where it only begins like such a text."""
    try:
        return io.BytesIO(path.read_bytes().decode("utf-16").encode())
    except UnicodeDecodeError:
        return None


def is_undecided(path: Path) -> bool:
    """Whether a text has less than two whole lines, by which its format could still be another."""
    if path.is_dir():
        return False
    start = _start_of(path)
    is_clear = start.lstrip().startswith(b"{") or b"\0" in start or IS_MLPERF.search(start)
    return start.count(b"\n") < 2 and not is_clear
