"""Where uploads come in: so many are read at once, and those that are models or logs go to the shelf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from traincast.web.desk import Desk, Gate
from traincast.web.replies import Uploaded, UploadedLog
from traincast.web.shelf import Shelf, Upload
from traincast.web.uploads import continue_log, keep_log, read_model

if TYPE_CHECKING:
    from starlette.requests import Request

    from traincast.web.limits import Limits
    from traincast.web.questions import LogQuestion


class Reception:
    """Who comes while all readers are busy waits, and after them nobody."""

    def __init__(self, shelf: Shelf, desk: Desk, limits: Limits) -> None:
        self._shelf, self._desk, self._limits = shelf, desk, limits
        self._gate = Gate(limits.n_readers, limits.n_readers_waiting)

    async def take_model(self, request: Request, name: str, options: dict[str, int]) -> Uploaded:
        async with self._gate.enter():
            found = await read_model(request, name, options, self._limits)
        key = self._shelf.put("upload", Upload(name, found.content))
        await to_thread.run_sync(self._desk.expect_questions)
        return Uploaded(id=key, name=name, **found.told)

    async def take_log(self, request: Request, name: str, metric: str | None) -> UploadedLog:
        async with self._gate.enter():
            found = await keep_log(request, name, metric, self._limits)
        key = self._shelf.put("log", Upload(name, found.content))
        await to_thread.run_sync(self._desk.expect_questions)
        return UploadedLog(id=key, name=name, **found.told)

    async def continue_log(self, request: Request, asked: LogQuestion, presenter: str) -> bytes:
        """The reply about a log that is not kept."""
        async with self._gate.enter():
            return await continue_log(request, asked, presenter, self._limits)
