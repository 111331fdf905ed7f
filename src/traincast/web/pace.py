"""How fast a body has to arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Pace:
    """A body is complete after some seconds, or has grown by so many bytes and gets as many seconds again.

    A limit on the whole body would refuse an honest upload over a slow line; one on each silence would let one byte a
    second through. The clock runs only while the body is waited for: a server that is busy does not make it slow.
    """

    def __init__(self, *, bytes_per_s: int, seconds: float) -> None:
        self._n_bytes, self._seconds = int(bytes_per_s * seconds), seconds
        self._bytes_due, self._left_s = self._n_bytes, seconds

    async def receive(self, receive: Receive) -> Message:
        """The next piece of the body."""
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(self._left_s):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, self._sentence(), headers={"Connection": "close"}) from error
        self._left_s -= time.monotonic() - began_s
        self._bytes_due -= len(message.get("body", b""))
        if self._bytes_due <= 0:
            self._bytes_due, self._left_s = self._n_bytes, self._seconds
        return message

    def _sentence(self) -> str:
        return (
            f"The request arrived too slowly: after {self._seconds:g} s a body must be complete, or have grown by "
            f"{max(1, self._n_bytes // 1024)} KiB."
        )
