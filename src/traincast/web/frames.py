"""Bytes between two processes: each message is a number of parts, each part its length and then itself."""

from __future__ import annotations

import struct
from typing import IO

_COUNT, _LENGTH = struct.Struct(">B"), struct.Struct(">Q")


def send(stream: IO[bytes], *parts: bytes) -> None:
    """Writes one message."""
    stream.write(_COUNT.pack(len(parts)))
    for part in parts:
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> list[bytes]:
    """The next message; EOFError where the other side has ended."""
    (count,) = _COUNT.unpack(_exactly(stream, _COUNT.size))
    return [_exactly(stream, _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]) for _ in range(count)]


def _exactly(stream: IO[bytes], n_bytes: int) -> bytes:
    found = stream.read(n_bytes)
    if len(found) < n_bytes:
        raise EOFError
    return found
