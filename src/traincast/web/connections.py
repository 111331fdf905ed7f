"""Connections that ask nothing, or do not read what they asked for, are closed: a thousand would be the end of it."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_NO_LINGER = struct.pack("ii", 1, 0)
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    b'{"error":"The server has more visitors than it can answer now: try again in a few seconds."}'
)


_NO_HTTP = b'{"error":"This is no HTTP request that can be read."}'


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, with an eye on how long no request was under way, and on how long nobody has read."""

    idle_s = 15.0
    n_connections = 500

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch = self.loop.call_later(self.idle_s, self._look, None)
        self._unread: asyncio.TimerHandle | None = None
        if len(self.connections) > self.n_connections:
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        self._read_again()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More is written than the system takes: the other side has so long to read some of it."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.idle_s, self._drop)

    def resume_writing(self) -> None:
        self._read_again()
        super().resume_writing()

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def send_400_response(self, msg: str) -> None:
        """Of what is no HTTP; the same form as any other problem."""
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        reply = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for part in (reply, h11.Data(data=_NO_HTTP), h11.EndOfMessage()):
            self.transport.write(self.conn.send(part) or b"")
        self.transport.close()

    def _look(self, seen: Any) -> None:
        """Closes where nothing has begun since the last look, and nothing is under way."""
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is seen:
            self._drop()
            return
        self._watch = self.loop.call_later(self.idle_s, self._look, self.cycle if is_idle else None)

    def _drop(self) -> None:
        """At once: `close` waits for somebody to read what is still to be sent, and so does the system."""
        if not self.transport.get_write_buffer_size():
            self.transport.close()
            return
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()


def protocol_with(*, idle_s: float, n_connections: int) -> type[ImpatientProtocol]:
    """The protocol with this patience, as uvicorn wants a class."""
    return type("Protocol", (ImpatientProtocol,), {"idle_s": idle_s, "n_connections": n_connections})
