"""What every request passes first: who may ask, how much, how slowly; and the headers that every reply carries."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from traincast.web.limits import Limits
from traincast.web.pace import Message, Pace, Receive
from traincast.web.refusals import problem

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
UPLOAD_PATHS = ("/api/models", "/api/logs", "/api/converge")
_PIECE_BYTES = 64 * 1024
# Plotly writes its style sheet into the page, so styles may be inline; scripts may not.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """An ASGI application around the application."""

    def __init__(self, app: App, *, limits: Limits, host: str) -> None:
        self._app, self._limits = app, limits
        self._names = {"localhost", socket.gethostname().lower(), host.lower()} - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; who only wants to know the headers is sent no body
            scope = {**scope, "method": "GET"}
            send = _without_body(send)
        send = _with_headers(_in_pieces(send), is_kept=not scope["path"].startswith("/api/"))
        refused = self._refused(Headers(scope=scope), scope["method"])
        if refused is None:
            with contextlib.suppress(ClientDisconnect):  # who has gone wants no answer
                await self._app(scope, self._limited(scope, receive), send)
        else:
            await problem(*refused)(scope, receive, send)

    def _refused(self, headers: Headers, method: str) -> tuple[int, str] | None:
        """Another page in the same browser must not ask: neither under a name of its own nor from its own origin."""
        host = headers.get("host", "")
        found = _HOST.fullmatch(host)
        name = "" if found is None else (found["address"] or found["name"]).lower()
        if name not in self._names and not _is_address(name):
            return 400, f"This server does not answer under the name '{name[:80]}': use its address, or localhost."
        origin = headers.get("origin")
        if method == "POST" and origin is not None and origin.partition("://")[2] != host:
            return 403, "Requests from the pages of other sites are not answered."
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Raises where the body is too long or too slow; the application makes a reply of that."""
        is_upload = scope["method"] == "POST" and scope["path"] in UPLOAD_PATHS
        most = self._limits.upload_bytes if is_upload else self._limits.question_bytes
        pace = Pace(bytes_per_s=self._limits.body_bytes_per_s, seconds=self._limits.body_pace_s)
        told = Headers(scope=scope).get("content-length", "0")
        n_bytes, is_whole = 0, False

        async def limited() -> Message:
            nonlocal n_bytes, is_whole
            if is_whole:  # from now on only the end of the connection is waited for
                return await receive()
            if not (told.isascii() and told.isdigit()) or int(told) > most:
                raise _too_large(most)
            message = await pace.receive(receive)
            n_bytes += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if n_bytes > most:
                raise _too_large(most)
            return message

        return limited


def _too_large(most: int) -> HTTPException:
    shown = f"{most // 2**20} MiB" if most >= 2**20 else f"{most // 1024} KiB"
    return HTTPException(413, f"The request is larger than {shown}, the most that is accepted.")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _in_pieces(send: Send) -> Send:
    """A long body bit by bit, each when the one before has gone: who does not read costs no memory."""

    async def sending(message: Message) -> None:
        body = message.get("body", b"")
        for start in range(0, len(body) - _PIECE_BYTES, _PIECE_BYTES):
            await send({**message, "body": body[start : start + _PIECE_BYTES], "more_body": True})
        last = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
        await send({**message, "body": body[last:]} if last else message)

    return sending


def _without_body(send: Send) -> Send:
    async def sending(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sending


def _with_headers(send: Send, *, is_kept: bool) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-cache" if is_kept else "no-store")
        await send(message)

    return sending
