"""Where questions are worked on: a few at a time, in threads, and kept so that the same one is not worked on twice."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from traincast.errors import BusyError
from traincast.web.answers import ANSWERS

if TYPE_CHECKING:
    from traincast.web.limits import Limits
    from traincast.web.presenting import Presenters
    from traincast.web.questions import Question
    from traincast.web.shelf import Shelf


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


class Desk:
    """Answers with what is on the shelf. Long questions go through a gate of their own, so that short ones pass."""

    def __init__(self, shelf: Shelf, present: Presenters, limits: Limits) -> None:
        self._shelf, self._present = shelf, present
        self._gates = {True: Gate(1, limits.n_waiting), False: Gate(limits.n_workers, limits.n_waiting)}
        self._threads = CapacityLimiter(limits.n_workers + 1)
        self._most, self._most_bytes = limits.kept_answers, limits.kept_answer_bytes
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._n_bytes = 0

    async def answer(self, what: str, asked: Question) -> bytes:
        key = (what, asked.model_dump_json())
        if (found := self._again(key)) is not None:
            return found
        async with self._gates[what == "plan"].enter():
            if (found := self._again(key)) is not None:  # somebody asked the same while this one waited
                return found
            work = partial(self._work, what, asked)
            content = await to_thread.run_sync(work, limiter=self._threads)
        self._keep(key, content)
        return content

    def _work(self, what: str, asked: Question) -> bytes:
        return ANSWERS[what](asked, self._shelf.find(asked.model), self._present)

    def _again(self, key: tuple[str, str]) -> bytes | None:
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: tuple[str, str], content: bytes) -> None:
        self._n_bytes += len(content) - len(self._kept.pop(key, b""))
        self._kept[key] = content
        while len(self._kept) > self._most or self._n_bytes > self._most_bytes:
            _, old = self._kept.popitem(last=False)
            self._n_bytes -= len(old)
