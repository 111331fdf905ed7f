"""Questions that are answered in a process which can be ended: what a stranger has written is opened nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traincast.child_process import end, start_module
from traincast.errors import FileFormatError
from traincast.web.frames import receive, send

if TYPE_CHECKING:
    from traincast.web.limits import Limits

QUIET = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PROBLEM = b"problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What a process may take for one answer, and the sentences for one that takes more."""

    seconds: float
    memory_bytes: int
    trace_memory_bytes: int
    answer_bytes: int
    niceness: int = 0
    too_long: str
    ended: str


def upload_limits(limits: Limits) -> ProcessLimits:
    """Of a question about an upload."""
    return ProcessLimits(
        seconds=limits.question_s,
        memory_bytes=limits.question_memory_bytes,
        trace_memory_bytes=limits.trace_memory_bytes,
        answer_bytes=limits.answer_bytes,
        too_long="The answer took longer than the {seconds:g} s that one about an upload may take.",
        ended="The upload could not be asked about: it is damaged, or needs more memory than a question may take.",
    )


class AnswerProcess:
    """One worker that lives on between questions, so that it knows a model when it is asked about it again.

    It has limits on its memory, and a question that takes too long is its end; the next one finds a new worker.
    """

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._options = json.dumps(
            {
                "memory_bytes": limits.memory_bytes,
                "trace_memory_bytes": limits.trace_memory_bytes,
                "answer_bytes": limits.answer_bytes,
                "niceness": limits.niceness,
            }
        )
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = bool  # ends the worker and what it leaves behind

    def start(self) -> subprocess.Popen[bytes]:
        """The worker, which is started if there is none."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                folder = tempfile.mkdtemp(prefix="traincast-answer-")
                self._process = start_module(
                    *("traincast.web.answer_process_main", self._options),
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | QUIET,
                )
                self._end = weakref.finalize(self, _end, self._process, folder)
            return self._process

    def answer(self, question: bytes, model: bytes, log: bytes) -> bytes:
        """Blocks until the reply is there, or its time is over. One question at a time."""
        process, is_late = self.start(), threading.Event()
        assert process.stdin is not None
        assert process.stdout is not None

        def end() -> None:
            is_late.set()
            process.kill()

        clock = threading.Timer(self._limits.seconds, end)
        clock.start()
        try:
            send(process.stdin, question, model, log)
            kind, content = receive(process.stdout)
        except (OSError, EOFError) as error:
            self._end()
            raise FileFormatError(self._reason(is_late.is_set())) from error
        finally:
            clock.cancel()
        if kind == PROBLEM:
            raise FileFormatError(content.decode())
        return content

    def _reason(self, is_late: bool) -> str:
        return (self._limits.too_long if is_late else self._limits.ended).format(seconds=self._limits.seconds)


def _end(process: subprocess.Popen[bytes], folder: str) -> None:
    end(process)
    shutil.rmtree(folder, ignore_errors=True)
