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
from traincast.web.answers import ANSWERS, Given
from traincast.web.questions import seqlen_of, target_of
from traincast.web.stored_uploads import Upload, is_upload, zoo_model
from traincast.web.upload_process import UploadProcess

if TYPE_CHECKING:
    from traincast.web.limits import Limits
    from traincast.web.questions import Question
    from traincast.web.stored_uploads import StoredUploads


class GoneError(HTTPException):
    """Whoever asked has gone while they waited; nobody reads this."""

    def __init__(self) -> None:
        super().__init__(499, "Whoever asked has gone.")


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
    """Answers by name. Plans, and questions about uploads, have gates of their own, so that short ones pass."""

    def __init__(self, stored: StoredUploads, limits: Limits) -> None:
        self._stored = stored
        self._upload_process = UploadProcess(limits)
        self._gates = {way: Gate(limits.n_workers, limits.n_waiting) for way in Way}
        self._threads = CapacityLimiter(limits.n_workers * len(Way))
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
            work = partial(self._work_on_upload if way is Way.UPLOAD else self._work, what, asked)
            content = await to_thread.run_sync(work, limiter=self._threads)
        self._kept.put(key, content)
        return content

    def expect_questions(self) -> None:
        """Somebody has uploaded something, and will ask about it."""
        self._upload_process.start()

    def _work(self, what: str, asked: Question) -> bytes:
        return ANSWERS[what](asked, Given(trace=zoo_model(asked.model, seqlen_of(asked))))

    def _work_on_upload(self, what: str, asked: Question) -> bytes:
        target = target_of(asked)
        model = self._stored.find(asked.model).content if is_upload(asked.model) else b""
        log = self._stored.find(target.log) if target is not None else Upload("", b"")
        question = {"what": what, "asked": asked.model_dump(), "log_name": log.name}
        return self._upload_process.answer(json.dumps(question).encode(), model, log.content)


class Way(Enum):
    """How a question is answered."""

    SHORT = "short"
    PLAN = "plan"
    UPLOAD = "upload"


def _way(what: str, asked: Question) -> Way:
    if is_upload(asked.model) or target_of(asked) is not None:
        return Way.UPLOAD
    return Way.PLAN if what == "plan" else Way.SHORT


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
