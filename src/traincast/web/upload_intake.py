"""Where uploads come in: each is received, then read, so many at once, and what is readable is kept."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from traincast.errors import FileFormatError
from traincast.web.arrivals import Arrivals
from traincast.web.child import UPLOAD
from traincast.web.clients import client_of
from traincast.web.question_runner import Gate, GoneError, QuestionRunner
from traincast.web.replies import Uploaded, UploadedLog
from traincast.web.stored_uploads import StoredUploads, Upload
from traincast.web.uploads import continue_log, keep_log, plain_name, read_model

if TYPE_CHECKING:
    from starlette.requests import Request

    from traincast.web.limits import Limits
    from traincast.web.questions import LogQuestion


class UploadIntake:
    """Who comes while all readers are busy waits, and after them nobody."""

    def __init__(self, stored: StoredUploads, runner: QuestionRunner, limits: Limits) -> None:
        self._stored, self._runner, self._limits = stored, runner, limits
        self._arrivals = Arrivals(limits)
        self._gate = Gate(limits.n_readers, limits.n_readers_waiting)

    async def take_model(self, request: Request, name: str, options: dict[str, int]) -> Uploaded:
        async with self._received(request, name) as folder:
            found = await read_model(folder, name, options, self._limits)
        key = self._stored.put("upload", Upload(name, found.content))
        await to_thread.run_sync(self._runner.expect_questions)
        return Uploaded(id=key, name=name, **found.told)

    async def take_log(self, request: Request, name: str, metric: str | None) -> UploadedLog:
        async with self._received(request, name) as folder:
            found = await keep_log(folder, name, metric, self._limits)
        key = self._stored.put("log", Upload(name, found.content))
        await to_thread.run_sync(self._runner.expect_questions)
        return UploadedLog(id=key, name=name, **found.told)

    async def continue_log(self, request: Request, asked: LogQuestion) -> bytes:
        """The reply about a log that is not kept."""
        async with self._received(request, plain_name(asked.name)) as folder:
            return await continue_log(folder, asked, self._limits)

    @asynccontextmanager
    async def _received(self, request: Request, name: str) -> AsyncIterator[Path]:
        """A folder of its own with the whole upload, and then a reader: who sends slowly keeps none from the others."""
        client = client_of(request.client.host if request.client is not None else "")
        with (
            self._arrivals.place(client) as arrival,
            tempfile.TemporaryDirectory(prefix="traincast-upload-") as made,
        ):
            folder = Path(made)
            await self._arrivals.save(arrival, request.stream(), folder / UPLOAD)
            if not arrival.n_bytes:
                raise FileFormatError(f"'{name}' is empty.")
            async with self._gate.enter():
                if await request.is_disconnected():
                    raise GoneError
                yield folder
