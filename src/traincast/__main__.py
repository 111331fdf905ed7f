"""The `traincast` command: one line on stderr and an exit code for everything that can go wrong."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from traincast.errors import TraincastError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # a full disk or device under stdout
_USER_MISTAKE, _INTERRUPTED, _PIPE_CLOSED = 2, 130, 1


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code; our errors become one line, bugs keep their traceback."""
    try:
        from traincast.cli.app import run_line
        from traincast.cli.typed import TYPED

        try:
            TYPED.set(tuple(arguments))
            return run_line(arguments)
        finally:
            sys.stdout.flush()  # a closed pipe must show here, where it is handled, and not when Python exits
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except TraincastError as error:
        from traincast.cli.typed import in_options

        sys.stderr.write(f"Error: {' '.join(in_options(error).split())}\n")
        return _USER_MISTAKE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _write_nowhere()
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _write_nowhere()
        sys.stderr.write(f"Error: The answer cannot be written: {os.strerror(error.errno)}.\n")
        return _USER_MISTAKE


def _write_nowhere() -> None:
    """What is left in the buffer would fail once more when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
