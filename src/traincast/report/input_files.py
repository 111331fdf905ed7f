"""Reading what a user names: only files, which have an end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

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
