"""Writing a file so that it is either whole or not there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from traincast.errors import InputError, quoted


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write through a temporary file in the same folder, and give back where the content is now.

    A reader never sees half a file, and what was there before stays until the new one is complete.
    """
    path = Path(path)
    data = content.encode("utf-8", errors="replace") if isinstance(content, str) else content
    check_writable(path)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or a pipe (/dev/stdout), which must not be replaced by a file
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from error
    return path


def check_writable(path: Path) -> None:
    """Whether a file can be written there, as far as that is known before it has content."""
    try:
        if "\0" in str(path):
            raise InputError(f"Cannot write {quoted(str(path))}: its name has a null character.")
        if path.is_dir():
            raise InputError(f"Cannot write '{path}': it is a folder.")
        if not path.parent.is_dir():
            raise InputError(f"Cannot write '{path}': the folder '{path.parent}' does not exist.")
        is_file = path.is_file() or not path.exists()  # a device or a pipe is written to, a file replaced
    except OSError as error:  # a folder that may not be entered, a name that is too long
        raise InputError(f"Cannot write '{path}': {error.strerror}.") from None
    if not os.access(path.resolve().parent if is_file else path, os.W_OK):
        raise InputError(f"Cannot write '{path}': no permission to write to the folder '{path.parent}'.")


def _replace(path: Path, data: bytes) -> None:
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_bytes(data)  # created with the user's umask, unlike tempfile's private files
        half.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise
