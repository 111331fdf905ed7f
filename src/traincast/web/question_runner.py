"""Where questions are worked on: a few at a time, in threads, and kept so that the same one is not worked on twice."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException

from traincast.errors import BusyError
from traincast.web.answer_process import AnswerProcess, upload_limits
from traincast.web.answers import ANSWERS, Given
from traincast.web.plan_processes import PlanProcesses
from traincast.web.questions import seqlen_of, target_of
from traincast.web.stored_uploads import Upload, is_upload, zoo_model

if TYPE_CHECKING:
    from traincast.web.limits import Limits
    from traincast.web.questions import Question
    from traincast.web.stored_uploads import StoredUploads


class GoneError(HTTPException):
    """Whoever asked has gone while they waited; nobody reads this."""

    def __init__(self) -> None:
        super().__init__(499, "The client has gone.")


class Gate:
    """Lets so many in at once and so many wait; whoever comes after them is told to try again."""

    def __init__(self, n_inside: int, n_waiting: int) -> None:
        self._places = asyncio.Semaphore(n_inside)
        self._most, self._n = n_inside + n_waiting, 0

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        if self._n >= self._most:
            raise BusyError
        self._n += 1
        try:
            async with self._places:
                yield
        finally:
            self._n -= 1


class QuestionRunner:
    """Answers by name. Plans, and questions about uploads, have queues and processes of their own: short ones pass."""

    def __init__(self, stored: StoredUploads, limits: Limits) -> None:
        self._stored = stored
        self._upload_process = AnswerProcess(upload_limits(limits))
        self._plan_processes = PlanProcesses(limits)
        n_at_once = {Way.SHORT: limits.n_workers, Way.PLAN: limits.n_planners, Way.UPLOAD: 1}
        self._gates = {way: Gate(n_at_once[way], limits.n_waiting) for way in Way}
        self._threads = CapacityLimiter(sum(n_at_once.values()))
        self._kept = KeptAnswers(most=limits.kept_answers, most_bytes=limits.kept_answer_bytes)

    async def answer(self, what: str, asked: Question, is_gone: Callable[[], Awaitable[bool]]) -> bytes:
        """The body of the reply. Who has gone while they waited is not worked for."""
        key = (what, asked.model_dump_json())
        if (found := self._kept.get(key)) is not None:
            return found
        way = _way(what, asked)
        async with self._gates[way].enter():
            if (found := self._kept.get(key)) is not None:  # somebody asked the same while this one waited
                return found
            if await is_gone():
                raise GoneError
            if what == "forecast" and getattr(asked, "n_samples", None) is not None:
                await to_thread.run_sync(self._plan_processes.start)  # what a run costs is what a plan is asked next
            content = await to_thread.run_sync(partial(self._work, way, what, asked), limiter=self._threads)
        self._kept.put(key, content)
        return content

    def expect_questions(self) -> None:
        """Somebody has uploaded something, and will ask about it."""
        self._upload_process.start()

    def _work(self, way: Way, what: str, asked: Question) -> bytes:
        if way is Way.SHORT:
            return ANSWERS[what](asked, Given(trace=zoo_model(asked.model, seqlen_of(asked))))
        target = target_of(asked)
        model = self._stored.find(asked.model).content if is_upload(asked.model) else b""
        log = self._stored.find(target.log) if target is not None else Upload("", b"")
        question = {"what": what, "asked": asked.model_dump(), "log_name": log.name}
        processes = self._plan_processes if way is Way.PLAN else self._upload_process
        return processes.answer(json.dumps(question).encode(), model, log.content)


class Way(Enum):
    """How a question is answered: in a thread of the server, or in a process beside it."""

    SHORT = "short"
    PLAN = "plan"  # also of an upload
    UPLOAD = "upload"


def _way(what: str, asked: Question) -> Way:
    if what == "plan":
        return Way.PLAN
    return Way.UPLOAD if is_upload(asked.model) or target_of(asked) is not None else Way.SHORT


class KeptAnswers:
    """Replies to the last questions, as many as fit."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._answers: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.n_bytes = 0

    def get(self, key: tuple[str, str]) -> bytes | None:
        if key not in self._answers:
            return None
        self._answers.move_to_end(key)
        return self._answers[key]

    def put(self, key: tuple[str, str], content: bytes) -> None:
        if len(content) > self._most_bytes // 4:  # it would push out everything else
            return
        self.n_bytes += len(content) - len(self._answers.pop(key, b""))
        self._answers[key] = content
        while len(self._answers) > self._most or self.n_bytes > self._most_bytes:
            _, old = self._answers.popitem(last=False)
            self.n_bytes -= len(old)
