"""Reading what a user names: only files, which have an end."""

from __future__ import annotations

import contextlib
import errno
import stat
from collections.abc import Iterator
from pathlib import Path

from traincast.errors import CaptureError, FileFormatError, InputError, ParameterError

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def regular(path: str | Path) -> Path:
    """The path, unless it leads to what may never end (/dev/zero) or never begin (a pipe that nobody writes to).

    Raises `OSError` then, as opening raises it for a folder or for what is not there: callers say what was to be read.
    """
    path = Path(path)
    mode = path.stat().st_mode
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    return path


def is_there(path: str | Path) -> bool:
    """Whether something has this name; also of one that no file can have, such as one of 300 letters."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """A refusal of what a file holds names the file, whoever notices."""
    try:
        yield
    except (FileFormatError, InputError, CaptureError) as error:
        if isinstance(error, ParameterError) or Path(path).name in str(error):  # the first is of what else was asked
            raise
        raise type(error)(f"'{path}': {error}") from error


def not_utf8(content: bytes) -> str:
    """What is wrong with text that is no UTF-8, after the name of the file."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 text, as Excel writes 'Unicode Text': save it as 'CSV UTF-8'"
    return "is not UTF-8 text: save it as 'CSV UTF-8', if it is a table"
