"""Connections that ask nothing are closed: a thousand of them, each with half a header, would be the end of it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, with an eye on how long no request was under way."""

    idle_s = 15.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch = self.loop.call_later(self.idle_s, self._look, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self, seen: Any) -> None:
        """Closes where nothing has begun since the last look, and nothing is under way."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is seen:
            self.transport.close()
            return
        self._watch = self.loop.call_later(self.idle_s, self._look, self.cycle if is_idle else None)


def protocol_with(idle_s: float) -> type[ImpatientProtocol]:
    """The protocol with this patience, as uvicorn wants a class."""
    return type("Protocol", (ImpatientProtocol,), {"idle_s": idle_s})
