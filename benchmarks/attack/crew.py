"""A worker that tries one file after the other in a process of its own: a crash or a deaf loop ends nothing else."""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from attack.trial import MOST_BYTES, MOST_S, Outcome, tried

_GRACE_S = 15.0  # for code that does not hear the alarm
_ROOM_BYTES = (
    2 * MOST_BYTES
)  # of address space beyond what the libraries have mapped: a bomb ends before the machine does


class Worker:
    """Give it files to try; it starts anew after each that ended it."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def tried(self, name: str, seed: int, number: int) -> Outcome:
        """What became of the file, also where it ended the process."""
        try:
            self._pipe.send((name, seed, number))
            if self._pipe.poll(MOST_S + _GRACE_S):
                outcome: Outcome = self._pipe.recv()
                return outcome
            wrong, what = "hang", "it did not even hear the alarm"
        except (EOFError, OSError):
            self._process.join(5)
            wrong, what = "traceback", f"the process died with {self._process.exitcode}"
        self._stop()
        self._start()
        return Outcome(kind=name, number=number, line="", code=-1, seconds=MOST_S, peak_bytes=0, wrong=wrong, what=what)

    def _start(self) -> None:
        self._pipe, others_end = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(others_end,), daemon=True)
        self._process.start()
        others_end.close()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    with tempfile.TemporaryDirectory(prefix="attack-") as place, contextlib.suppress(EOFError, KeyboardInterrupt):
        for name, seed, number in _orders(pipe):
            _limit_memory()
            pipe.send(tried(name, seed, number, Path(place) / "files"))


def _orders(pipe: Connection) -> Iterator[tuple[str, int, int]]:
    while True:
        yield pipe.recv()


def _limit_memory() -> None:
    """Only Linux tells how much is mapped, and only there is the limit kept."""
    with contextlib.suppress(OSError, ValueError):
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (mapped + _ROOM_BYTES, hard))
