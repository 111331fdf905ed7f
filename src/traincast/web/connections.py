"""Connections on which nothing comes, or nobody reads what was asked for, are closed.

A thousand of them would be the end of the server; so where room is short, they need not even be late.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import Counter
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from traincast.web.clients import client_of

_NO_LINGER = struct.pack("ii", 1, 0)
_NO_HTTP = "This is not a readable HTTP request."


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, with an eye on how long the other side has been waited for."""

    idle_s = 15.0
    n_connections = 500
    n_connections_of_one = 400

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = client_of(self.client[0] if self.client else "")
        self._idle_since_s = self._heard_s = self.loop.time()
        self._unread_since_s: float | None = None
        self._watch = self.loop.call_later(self.idle_s, self._look, None)
        self._unread: asyncio.TimerHandle | None = None
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.cancel()
        self._read_again()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._heard_s = self.loop.time()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._idle_since_s = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """More is written than the system takes: the other side has so long to read some of it."""
        super().pause_writing()
        self._unread_since_s = self.loop.time()
        self._unread = self.loop.call_later(self.idle_s, self._drop)

    def resume_writing(self) -> None:
        self._read_again()
        super().resume_writing()

    def _read_again(self) -> None:
        self._unread_since_s = None
        if self._unread is not None:
            self._unread.cancel()

    def waited_for_since_s(self) -> float | None:
        """Since when there is nothing to do here until the other side sends or reads; None where there is work."""
        if self._unread_since_s is not None:
            return self._unread_since_s
        if self._is_idle():
            return self._idle_since_s
        return self._heard_s if self.cycle.more_body else None

    def give_way(self) -> None:
        """A request of which a part has come is told why; without one, there is nobody to tell."""
        if not self._is_idle():
            self._tell(HTTPStatus.REQUEST_TIMEOUT, "The request was slow, and the server needed the connection.")
        self._drop()

    def _make_room(self) -> None:
        """Who has been waited for longest gives way; where everybody is being worked for, the newest does."""
        crowd = self._crowd()
        if not crowd:
            return
        waited_for = {one: since_s for one in crowd if (since_s := one.waited_for_since_s()) is not None}
        waited_for.pop(self, None)
        if waited_for:
            min(waited_for, key=lambda one: waited_for[one]).give_way()
            return
        self._tell(HTTPStatus.SERVICE_UNAVAILABLE, "The server is busy with other visitors: try again soon.")
        self.transport.close()

    def _crowd(self) -> list[ImpatientProtocol]:
        """The connections of a client that has too many, of the one that has most if all together are too many."""
        if len(self.connections) <= min(self.n_connections, self.n_connections_of_one):
            return []
        others = (one for one in self.connections if isinstance(one, ImpatientProtocol))
        there = [one for one in others if not one.transport.is_closing()]
        n_of = Counter(one.address for one in there)
        if n_of[self.address] > self.n_connections_of_one:
            return [one for one in there if one.address == self.address]
        if len(there) <= self.n_connections:
            return []
        most = n_of.most_common(1)[0][0]
        return [one for one in there if one.address == most]

    def send_400_response(self, msg: str) -> None:
        """Of what is no HTTP; the same form as any other problem."""
        self._tell(HTTPStatus.BAD_REQUEST, _NO_HTTP)
        self.transport.close()

    def _tell(self, status: HTTPStatus, sentence: str) -> None:
        """A problem of the connection, of which the application knows nothing. Not in the middle of a reply."""
        if not self._is_idle() and self.cycle.response_started:
            return
        body = json.dumps({"error": sentence})
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look(self, seen: Any) -> None:
        """Closes where nothing has begun since the last look, and nothing is under way."""
        is_idle = self._is_idle()
        if is_idle and self.cycle is seen:
            if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
                self._tell(
                    HTTPStatus.REQUEST_TIMEOUT, f"The head of the request was not complete after {self.idle_s:g} s."
                )
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


def protocol_with(*, idle_s: float, n_connections: int, n_connections_of_one: int) -> type[ImpatientProtocol]:
    """The protocol with this patience, as uvicorn wants a class."""
    options = {"idle_s": idle_s, "n_connections": n_connections, "n_connections_of_one": n_connections_of_one}
    return type("Protocol", (ImpatientProtocol,), options)
