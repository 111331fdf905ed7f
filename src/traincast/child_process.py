"""Processes of our own: Python modules started beside this one, of which none stays behind, however we end.

Each inherits the reading end of a pipe as its standard input. The kernel closes the writing end when this process ends
(`kill -9`, a closed terminal), where no handler of ours would run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import Any, Protocol


class Started(Protocol):
    """A process of `subprocess` or `asyncio`."""

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...


def start_module(module: str, *arguments: str, own_session: bool = True, **options: Any) -> subprocess.Popen[bytes]:
    """`python -m module`. In a session of its own, Ctrl-C reaches this process alone, which then ends the other."""
    command = module_command(module, *arguments)
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=own_session, **options)


def module_command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def end(process: subprocess.Popen[bytes], *, patience_s: float = 0.0) -> None:
    """Closes its input and waits that long, then kills it with its session, and closes what was open to it."""
    if patience_s:
        _close(process.stdin)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    if process.poll() is None:
        kill_session(process)
        process.wait()
    _close(process.stdin)
    _close(process.stdout)


def kill_session(process: Started) -> None:
    """With all that it has started, if it has a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg") and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def end_with_parent() -> None:
    """Called first by a process that was started with a pipe as its standard input."""
    threading.Thread(target=_wait_for_end_of_input, daemon=True).start()


def _close(pipe: Any) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):  # what was still to be written goes nowhere
            pipe.close()


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)  # the main thread may be deep inside a library, where no exception reaches it
