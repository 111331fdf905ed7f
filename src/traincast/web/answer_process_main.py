"""The process that answers plans, or questions about uploads, one after the other, until its input ends."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from traincast.errors import InputError, TraincastError
from traincast.web.answer_process import PROBLEM
from traincast.web.answers import ANSWERS, Given
from traincast.web.child import limit_memory
from traincast.web.frames import receive, send
from traincast.web.questions import QUESTIONS, Question, seqlen_of, target_of
from traincast.web.stored_uploads import zoo_model
from traincast.web.targets import aim_of

if TYPE_CHECKING:
    from traincast.curves.status.status import Status
    from traincast.logs.log import Log
    from traincast.trace.trace import Trace

_ANSWER, _LOG_FILE = b"answer", "log"
_N_KEPT = 8  # traces and fitted curves: people go back and forth between a few
_Kept = TypeVar("_Kept")


class _Last(Generic[_Kept]):
    """What was made last, by what it was made of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, _Kept] = OrderedDict()

    def get(self, key: object, make: Callable[[], _Kept]) -> _Kept:
        if key not in self._kept:
            self._kept[key] = make()
        self._kept.move_to_end(key)
        while len(self._kept) > _N_KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


class Worker:
    """Traces and curves that it has seen before are not read again."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._trace_bytes, self._answer_bytes = options["trace_memory_bytes"], options["answer_bytes"]
        self._traces: _Last[Trace] = _Last()
        self._ends: _Last[Status] = _Last()

    def reply(self, question: bytes, model: bytes, log: bytes) -> tuple[bytes, bytes]:
        """What kind of reply it is, and its content. A file can be well-formed and still make no sense."""
        try:
            content = self._answer(json.loads(question), model, log)
        except TraincastError as error:
            return PROBLEM, _sentence(str(error))
        except (MemoryError, RecursionError):
            return PROBLEM, b"This question needs more memory than an answer may take."
        except (ArithmeticError, ValueError, IndexError, KeyError, TypeError) as error:
            if not model and not log:
                raise  # nobody's upload: a bug of ours, which ends this process
            return PROBLEM, _sentence(f"The upload does not describe a step that can be forecast ({error}).")
        if len(content) > self._answer_bytes:
            most = f"{self._answer_bytes // 2**20} MiB"
            return PROBLEM, f"The answer is larger than {most}, the most that is sent.".encode()
        return _ANSWER, content

    def _answer(self, question: dict[str, Any], model: bytes, log: bytes) -> bytes:
        asked: Question = QUESTIONS[question["what"]].model_validate(question["asked"])
        given = Given(trace=self._trace(asked.model, model, seqlen_of(asked)))
        target = target_of(asked)
        if target is not None:
            read = self._log(log, question["log_name"], target.metric)
            aim = aim_of(read, target.value, target.metric)
            end = self._end(read, log, target.value, aim.metric) if question["what"] == "forecast" else None
            given = replace(given, log=read, aim=aim, end=end)
        return ANSWERS[question["what"]](asked, given)

    def _trace(self, name: str, content: bytes, seqlen: int | None) -> Trace:
        from traincast.trace.file import parse_trace

        if not content:
            return zoo_model(name, seqlen)
        if seqlen is not None:
            raise InputError("An uploaded model has the sequence length that it was uploaded with: leave seqlen out.")
        most = self._trace_bytes
        return self._traces.get(name, lambda: parse_trace(content, where="The upload", most_bytes=most))

    def _log(self, content: bytes, name: str, metric: str | None) -> Log:
        from traincast.api.logs import read_log

        Path(_LOG_FILE).write_bytes(content)
        return replace(read_log(_LOG_FILE, metric=metric), path=name)

    def _end(self, log: Log, content: bytes, target: float, metric: str | None) -> Status:
        from traincast.api.converging import converge

        key = (hashlib.sha256(content).digest(), target, metric)
        return self._ends.get(key, lambda: converge(log, metric=metric, target=target))


def _sentence(text: str) -> bytes:
    return " ".join(text.replace(f"'{_LOG_FILE}'", "The log").split()).encode(errors="replace")


def serve(source: IO[bytes], sink: IO[bytes], worker: Worker) -> None:
    """Until the other side has ended."""
    while True:
        try:
            question, model, log = receive(source)
        except EOFError:
            return
        send(sink, *worker.reply(question, model, log))


def main() -> None:
    """The argument: limits as JSON. What anybody prints must not get between the replies.

    Its folder goes with it: a server that was ended by a signal has no time for that.
    """
    options = json.loads(sys.argv[1])
    limit_memory(options["memory_bytes"])
    if options["niceness"] and hasattr(os, "nice"):
        os.nice(options["niceness"])
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    folder = Path.cwd()
    try:
        serve(sys.stdin.buffer, sink, Worker(options))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
