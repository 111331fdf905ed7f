"""Damage inside of what is packed: zip archives, gzip streams, saved traces, stores, event files."""

from __future__ import annotations

import gzip
import io
import json
import random
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from attack import nasty
from attack.damage_bytes import damaged_bytes
from attack.damage_json import damaged_document
from attack.damage_text import damaged_lines

Damage = Callable[[bytes, random.Random], bytes]
_BOMB_BYTES = 1 << 27


def in_gzip(inside: Damage) -> Damage:
    """Of a gzipped file: the stream, or what is in it."""

    def damage(data: bytes, rng: random.Random) -> bytes:
        how = rng.random()
        if how < 0.3:
            return damaged_bytes(data, rng)
        if how < 0.32:
            return gzip.compress(rng.choice((b"\0", b"[", b"1\n", b" ")) * (_BOMB_BYTES // 2), 1, mtime=0)
        return gzip.compress(inside(gzip.decompress(data), rng), mtime=0)

    return damage


def damaged_zip(data: bytes, rng: random.Random) -> bytes:
    """Of an archive: its bytes, or one of its members."""
    if rng.random() < 0.25:
        return damaged_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    how = rng.random()
    if how < 0.1:
        del members[name]
    elif how < 0.13:
        members[name] = rng.choice((b"\0", b"[", b"9")) * _BOMB_BYTES
    elif name.endswith(".json") and how < 0.8:
        members[name] = damaged_document(json.loads(members[name]), rng).encode()
    else:
        members[name] = damaged_bytes(members[name], rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def damaged_trace(data: bytes, rng: random.Random) -> bytes:
    """Of a saved trace: its header, or the numbers of its arrays, so that it unpacks as before."""
    if rng.random() < 0.2:
        return damaged_bytes(data, rng)
    head, _, body = data.partition(b"\n")
    return head + b"\n" + zlib.compress(damaged_headed(zlib.decompress(body), rng), 1)


def damaged_headed(content: bytes, rng: random.Random) -> bytes:
    """Of a file with the length of a JSON header, the header, and arrays, as saved traces and safetensors have it."""
    (length,) = struct.unpack_from("<Q", content)
    header, arrays = content[8 : 8 + length], content[8 + length :]
    if rng.random() < 0.5:
        header = damaged_document(json.loads(header), rng).encode()
    else:
        arrays = _other_numbers(arrays, rng)
    return struct.pack("<Q", len(header)) + header + arrays


def _other_numbers(arrays: bytes, rng: random.Random) -> bytes:
    changed = bytearray(arrays)
    for _ in range(rng.choice((1, 1, 2, 10))):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
    return bytes(changed) if rng.random() < 0.9 else bytes(changed[: rng.randrange(len(changed))])


def damaged_store(data: bytes, rng: random.Random) -> bytes:
    """Of a store of records: its file, or a cell of one of its tables."""
    if rng.random() < 0.4:
        return damaged_bytes(data, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        path.write_bytes(data)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(rng.choice((1, 1, 2))):
            _change_cell(connection, rng)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return path.read_bytes()


def _change_cell(connection: sqlite3.Connection, rng: random.Random) -> None:
    column = rng.choice(("task", "value", "value", "environment", "kind", "created_s", "failed", "content"))
    table = "environments" if column == "content" else "records"
    rows = connection.execute(f"SELECT id, {column} FROM {table} ORDER BY id").fetchall()
    row, cell = rng.choice(rows)
    made: str | bytes | float | None = rng.choice((*nasty.JSON_VALUES, "", b"\xff\x00", 1e308, -1, float("inf")))
    if isinstance(cell, str) and cell.startswith("{") and rng.random() < 0.8:
        made = damaged_document(json.loads(cell), rng)
    try:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (made, row))
    except sqlite3.IntegrityError:  # a column that may not be empty
        connection.execute(f"DROP TABLE {table}")


def damaged_events(data: bytes, rng: random.Random) -> bytes:
    """Of TensorBoard's file: bytes, or records whose sums are right and whose content is not."""
    if rng.random() < 0.4:
        return damaged_bytes(data, rng)
    from attack.log_seeds import event_record

    records, place = [], 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        records.append(data[place + 12 : place + 12 + length])
        place += length + 16
    for _ in range(rng.choice((1, 1, 3, len(records)))):
        chosen = rng.randrange(len(records))
        records[chosen] = _other_numbers(records[chosen], rng) or b"\0"
    if rng.random() < 0.2:
        rng.shuffle(records)
    return b"".join(map(event_record, records))


gzipped_lines = in_gzip(damaged_lines)
