"""What clients that mean harm send to the page's server: web_load.py runs them, against this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import pickle
import random
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

QUESTIONS = ("forecast", "memory", "layers", "explain", "scale", "plan")
UPLOADS = ("models", "logs", "converge")
PATIENCE_S = 5.0  # of a hostile client for a reply
RETURNS_AFTER_S = 1.0  # whoever was thrown out


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """How many of each kind at once."""

    idle: int = 600
    slow_heads: int = 50
    slow_bodies: int = 50
    never_reading: int = 20
    oversized: int = 4
    malformed: int = 4


class Attack:
    """So many clients until the time is over; then every connection is closed."""

    def __init__(self, host: str, port: int, *, seconds: float, seed: int) -> None:
        if not ipaddress.ip_address(host).is_loopback:
            raise SystemExit(f"{host} is not this machine: others are not attacked.")
        self._address, self._until = (host, port), time.monotonic() + seconds
        self._chance = random.Random(seed)
        self.statuses: Counter[str] = Counter()

    async def run(self, crowd: Crowd) -> Counter[str]:
        """How often each status came back."""
        kinds = {
            self._slow_body: crowd.slow_bodies,
            self._slow_head: crowd.slow_heads,
            self._never_reading: crowd.never_reading,
            self._oversized: crowd.oversized,
            self._malformed: crowd.malformed,
            self._idle: crowd.idle,
        }
        clients = [self._again(act, number) for act, n_clients in kinds.items() for number in range(n_clients)]
        await asyncio.gather(*clients)
        return self.statuses

    async def _again(self, act: Callable[[Connection, int], Awaitable[None]], number: int) -> None:
        while (left_s := self._until - time.monotonic()) > 0:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(left_s), _connected(self._address) as connection:
                    await act(connection, number)
            quick = act in (self._malformed, self._oversized)
            await asyncio.sleep(0.02 if quick else RETURNS_AFTER_S * self._chance.uniform(0.5, 1.5))

    async def _idle(self, connection: Connection, _number: int) -> None:
        await connection.reader.read(1)

    async def _slow_head(self, connection: Connection, _number: int) -> None:
        await self._drip(connection, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")

    async def _slow_body(self, connection: Connection, number: int) -> None:
        path = (f"{UPLOADS[number // 2 % 3]}?name=run.csv") if number % 2 else QUESTIONS[number // 2 % len(QUESTIONS)]
        await self._drip(connection, request(f"/api/{path}", b"", n_bytes=50_000))

    async def _drip(self, connection: Connection, head: bytes) -> None:
        """One byte a second, and never a silence."""
        connection.writer.write(head)
        while not connection.reader.at_eof():
            await asyncio.sleep(1.0)
            connection.writer.write(b"1")
            await connection.writer.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    self._note(await connection.reader.read(1000))

    async def _never_reading(self, connection: Connection, _number: int) -> None:
        connection.writer.write(b"GET /plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(60)

    async def _oversized(self, connection: Connection, number: int) -> None:
        """A length that no server takes, or a body that is longer than was said, in pieces without an end."""
        if number % 2:
            connection.writer.write(request("/api/models?name=a.onnx", b"", n_bytes=10**12))
        else:
            connection.writer.write(request("/api/forecast", b"", header="Transfer-Encoding: chunked"))
            for _ in range(100):
                connection.writer.write(b"4000\r\n" + bytes(0x4000) + b"\r\n")
                await connection.writer.drain()
        await self._reply(connection)

    async def _malformed(self, connection: Connection, _number: int) -> None:
        connection.writer.write(self._chance.choice(MALFORMED))
        await self._reply(connection)

    async def _reply(self, connection: Connection) -> None:
        async with asyncio.timeout(PATIENCE_S):
            self._note(await connection.reader.read(1000))

    def _note(self, reply: bytes) -> None:
        if reply.startswith(b"HTTP/1.1 "):
            self.statuses[reply[9:12].decode()] += 1


@dataclass(frozen=True, slots=True)
class Connection:
    """Both directions."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@contextlib.asynccontextmanager
async def _connected(address: tuple[str, int]) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(*address, limit=2**16)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


def request(path: str, body: bytes, *, header: str = "", n_bytes: int | None = None) -> bytes:
    """A POST request, whose length is told as `n_bytes` where its body is not."""
    length = header or f"Content-Length: {len(body) if n_bytes is None else n_bytes}"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n{length}"
    return head.encode("latin-1") + b"\r\n\r\n" + body


def _no_http() -> Iterator[bytes]:
    """Not HTTP, or only nearly."""
    end = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)  # TLS
    yield bytes(5000) + b"\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"GET /\r\n\r\n"
    yield b"GET / HTTP/9.9\r\n\r\n"
    yield b"GET / HTTP/1.1\r\n\r\n"  # no host
    yield b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"
    yield b"GET " + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n"
    yield b"GET /" + end + b"X: " + b"a" * 100_000 + b"\r\n\r\n"
    yield b"GET /" + end + b"".join(b"X-%d: 1\r\n" % number for number in range(2000)) + b"\r\n"
    yield b"GET /" + end + b"no colon\r\n\r\n"
    yield b"GET /" + end + b"X: \x00\x01\r\n\r\n"
    yield b"GET /" + end + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n"
    yield b"GET /" + end + b"X-Forwarded-For: " + b"not an address, " * 100 + b"\r\n\r\n"
    yield b"GET /" + end + b"If-None-Match: " + b'"' * 5000 + b"\r\nRange: bytes=9-1,-,a\r\n\r\n"
    for path in (b"/../../etc/passwd", b"//etc/passwd", b"/%00", b"/%zz", b"/%ff%fe", b"http://evil.example/", b"*"):
        yield b"GET " + path + end + b"\r\n"
    for method in (b"TRACE", b"CONNECT", b"DELETE", b"get", b"A" * 3000):
        yield method + b" /api/forecast" + end + b"\r\n"
    for header in (
        "Content-Length: -5",
        "Content-Length: 1e3",
        "Content-Length: " + "9" * 5000,
        "Content-Length: 0x10",
    ):
        yield request("/api/forecast", b"{}", header=header)
    yield request("/api/forecast", b"{}", header="Content-Length: 2\r\nContent-Length: 3")
    yield request("/api/forecast", b"0\r\n\r\n", header="Content-Length: 2\r\nTransfer-Encoding: chunked")
    yield request("/api/forecast", b"zz\r\n{}", header="Transfer-Encoding: chunked")
    yield request("/api/models?name=a.onnx", b"-1\r\n{}", header="Transfer-Encoding: chunked")
    yield request("/api/models", b"zz\r\n{}", header="Transfer-Encoding: chunked")  # answered without its body
    yield request("/api/forecast", b"{}", header="Transfer-Encoding: gzip, chunked")


def _questions() -> Iterator[bytes]:
    """Bodies that are no questions."""
    multipart = b'--x\r\nContent-Disposition: form-data; name="model"; filename="a"\r\n\r\nresnet50\r\n--x--\r\n'
    bodies = [
        *(
            b"",
            b"{",
            b"null",
            b"[]",
            b'"resnet50"',
            b"\xff\xfe\x00",
            b"model=resnet50&on=T4",
            multipart,
            multipart[:40],
        ),
        *(
            b"[" * 60_000,
            b'{"model":' * 6_000,
            b"9" * 60_000,
            b'{"model": NaN}',
            zlib.compress(b'{"model": "alexnet"}'),
        ),
    ]
    odd = [
        *({"batch_size": value} for value in (0, -1, 2**63, 10**300, 1e308, "8", [8], True, None, {"a": 1})),
        *(
            {"model": value}
            for value in ("../../etc/passwd", "upload-0", "a\x00b", "\ud800", "x" * 50_000, 5, ["alexnet"])
        ),
        *(
            {"on": value}
            for value in ("T4" * 9_999, [], ["T4"] * 5_000, ["999999999xT4"], ["this-machine"], "\x1b[31m", {})
        ),
        *({"target": value} for value in ({"log": "log-0", "value": 1}, {"log": "/etc/passwd", "value": 0.5}, {}, 1)),
        {"precision": "fp0", "optimizer": "<script>"},
        {"n_samples": 10**18, "n_epochs": 10**9},
    ]
    bodies += [json.dumps({"model": "alexnet", "on": ["T4"], "batch_size": 8} | change).encode() for change in odd]
    for number, body in enumerate(bodies):
        yield request(f"/api/{QUESTIONS[number % len(QUESTIONS)]}", body)


def _uploads() -> Iterator[bytes]:
    """Files that are none, and names that are none. Reading a file takes a process each: there are few."""
    bomb = b"traincast-trace 1\n" + zlib.compress(bytes(100 * 2**20))
    for content in (b"", pickle.dumps(print), b"PK\x03\x04", b"\x08\x09garbage" * 99, bomb, b'{"model_type": "nope"}'):
        yield request("/api/models?name=a.onnx", content)
    for content in (bytes(range(256)), b"step,loss\n" + b"9" * 5000 + b",1e999\n"):
        yield request("/api/logs?name=run.csv", content)
    for query in (
        "",
        "?name=",
        "?name=" + "a" * 5000,
        "?name=%00%ff",
        "?name=a&metric=%ED%A0%80",
        "?name=a&name=b&x=1",
    ):
        yield request(f"/api/converge{query}", b"")


MALFORMED = (*_no_http(), *_questions(), *_uploads())
