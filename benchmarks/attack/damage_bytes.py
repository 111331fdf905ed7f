"""Damage that any file can take: bits, pieces, NULs, encodings."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

from attack import nasty


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to three accidents, one after the other."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_ACCIDENTS)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(min(len(data), rng.choice((1, 1, 2, 8, 64)))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _drop(data: bytes, rng: random.Random) -> bytes:
    first, last = _span(data, rng)
    return data[:first] + data[last:]


def _double(data: bytes, rng: random.Random) -> bytes:
    first, last = _span(data, rng)
    return data[:last] + data[first:]


def _move(data: bytes, rng: random.Random) -> bytes:
    first, last = _span(data, rng)
    rest = data[:first] + data[last:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + data[first:last] + rest[place:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    piece = rng.choice(nasty.BYTES) if rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 64))
    return data[:place] + piece + data[place:]


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    first, last = _span(data, rng)
    return data[:first] + rng.choice((b"\0", b"\xff", b"9", b" ")) * (last - first) + data[last:]


def _end_in_zeros(data: bytes, rng: random.Random) -> bytes:
    return data + b"\0" * rng.choice((1, 511, 1 << 16))


def _gzip(data: bytes, rng: random.Random) -> bytes:
    return gzip.compress(data, mtime=0)


def _empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"", b"\n", b"\0", b"\xef\xbb\xbf"))


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.choice((1, 2, 8, 64, 512)))


_ACCIDENTS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _cut, _cut, _drop, _double, _move, _insert, _insert, _overwrite, _end_in_zeros, _gzip, _empty,
)  # fmt: skip
