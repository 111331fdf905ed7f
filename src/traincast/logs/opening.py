"""The bytes of a file as those of a text in UTF-8: unpacked, and told from what is no text at all."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from traincast.errors import FileFormatError, InputError
from traincast.report.input_files import regular

_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what PowerShell writes
_START_BYTES = 64  # by which an encoding is known
_KINDS = {
    b"PK\x03\x04": "a zip archive, such as PyTorch saves checkpoints in",
    b"SQLite format 3\x00": "a database of SQLite",
    b"BZh": "a file compressed with bzip2 (unpack it first)",
    b"\xfd7zXZ\x00": "a file compressed with xz (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a file compressed with zstd (unpack it first)",
}
_CONTROL = bytes(set(range(32)) - set(b"\0\b\t\n\f\r\x1b"))
_MOST_CONTROL = 0.005  # of the bytes of a text


def is_packed(path: Path) -> bool:
    """Whether its bytes are not those of its lines: gzipped, or two a character."""
    start = _start_of(path)
    return start[:2] == _GZIP or _two_bytes_a_character(start) is not None


def open_log(path: Path) -> BinaryIO:
    """The file, unpacked where it is gzipped, and in UTF-8."""
    try:
        start = _start_of(path)
        if start[:2] == _GZIP:
            return cast(BinaryIO, gzip.open(path, "rb"))
        if (encoding := _two_bytes_a_character(start)) and (text := _decoded(path, encoding)) is not None:
            return text
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"There is no log '{path}'.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Says so where a gzipped file is cut off or no such file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"'{path}' is a damaged gzip file: {error}.") from None


def what_else(start: bytes) -> str | None:
    """What a file is that is no text; None for a text, also one with holes of NUL bytes, as a crash leaves them."""
    kind = next((kind for mark, kind in _KINDS.items() if start.startswith(mark)), None)
    if kind is not None or b"\0" not in start:
        return kind
    text = start.replace(b"\0", b"")
    n_control = len(text) - len(text.translate(None, _CONTROL))
    try:
        text[:-4].decode()  # the last character may be cut
    except UnicodeDecodeError:
        n_control = len(text)
    return "a binary file" if n_control > _MOST_CONTROL * len(text) else None


def _start_of(path: Path) -> bytes:
    with regular(path).open("rb") as raw:
        return raw.read(_START_BYTES)


def _two_bytes_a_character(start: bytes) -> str | None:
    """The encoding, by its mark or because every second byte is NUL."""
    if start[:2] in _UTF_16:
        return "utf-16"
    for place, encoding in ((0, "utf-16-le"), (1, "utf-16-be")):
        letters, nothing = start[place::2], start[1 - place :: 2]
        if len(nothing) > 1 and not any(nothing) and not set(letters) & {0, *_CONTROL}:
            return encoding
    return None


def _decoded(path: Path, encoding: str) -> BinaryIO | None:
    """None where it only begins like such a text."""
    data = path.read_bytes()
    try:
        return io.BytesIO(data[: len(data) & ~1].decode(encoding).encode())  # half a character is still being written
    except UnicodeDecodeError:
        return None
