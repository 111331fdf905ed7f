"""TensorBoard's event files, read without TensorBoard (its package brings a web server, gRPC and protobuf).

A file is a row of records: length, a checksum of it, the data, a checksum of them. The data are a protocol buffer, of
which we need four fields: when, at which step, which tag, which number. Older writers store a number as such, newer
ones as a tensor with one element. Some put many numbers into one record, so that it may be long.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.logs import gate, names
from traincast.report.input_files import regular

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_LONGEST_RECORD = 1 << 30
_LONGEST_READ = 1 << 25  # a million numbers: longer records are passed over, and told
_SHORT = 1 << 16  # longer records mostly hold pictures or graphs: only those with numbers are worth a checksum
_LONGEST_VARINT = 10  # bytes
_FLOAT, _DOUBLE = 1, 2  # TensorFlow's numbers for the types
Field = tuple[int, int | memoryview]  # number of the field, and what it holds
_Scalars = tuple[float, float, dict[str, float]]  # time, step, numbers by tag


def event_paths(path: Path) -> list[Path]:
    """The event files of a folder and of the folders in it, of which some may vanish meanwhile."""
    named = [Path(folder, name) for folder, _, names_in in os.walk(path) for name in names_in if "tfevents" in name]
    found = sorted(one for one in named if one.is_file())
    if not found:
        others = sorted(one.name for one in path.iterdir() if one.is_file())[:5]
        what = f": give one of its files, {', '.join(others)}" if others else ""
        raise InputError(f"The folder '{path}' has no event files (their names contain 'tfevents'){what}.")
    return found


def is_event_file(start: bytes) -> bool:
    """Whether the first bytes are a record whose length has the right checksum."""
    if len(start) < _HEADER.size:
        return False
    length, checksum = _HEADER.unpack_from(start)
    return 0 < length < _LONGEST_RECORD and checksum == _masked_crc(start[:8])


@dataclass(frozen=True, slots=True)
class Event:
    """One number of one tag, under the name that it has as a column."""

    run: str
    wall_s: float
    step: float
    column: str
    value: float


class EventFile:
    """One file, of which only what was appended is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._position = 0
        self._n_bad = self._n_long = 0
        self._is_damaged = False
        self.scalars: list[_Scalars] = []

    @property
    def remarks(self) -> list[str]:
        name = self._path.name
        found = []
        if self._n_bad:
            found.append(f"Left out: {_records(self._n_bad)} of '{name}' with damaged data.")
        if self._n_long:
            found.append(f"Left out: {_records(self._n_long)} of '{name}' longer than {_LONGEST_READ >> 20} MiB.")
        if self._is_damaged:
            found.append(f"'{name}' is damaged after {self._position} bytes: what follows is left out.")
        return found

    def read_on(self) -> None:
        """What was appended, one record at a time."""
        with regular(self._path).open("rb") as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if n_bytes < self._position:
                self._begin()
            self._is_damaged = False
            while self._position + _HEADER.size <= n_bytes:
                file.seek(self._position)  # within what is read ahead, unless a record was passed over
                header = file.read(_HEADER.size)
                length, checksum = _HEADER.unpack(header)
                self._is_damaged = checksum != _masked_crc(header[:8])
                if self._is_damaged and self._position == 0:
                    raise FileFormatError(
                        f"'{self._path}' is not an event file of TensorBoard: its first record is damaged."
                    )
                end = self._position + _HEADER.size + length + _CHECKSUM.size
                if self._is_damaged or end > n_bytes:
                    break  # or it is still being written
                if length > _LONGEST_READ:
                    self._n_long += 1
                else:
                    self._take(file.read(length), file.read(_CHECKSUM.size))
                self._position = end

    def _take(self, record: bytes, checksum: bytes) -> None:
        """Keeps the numbers of a record that is whole: a flipped bit may still read as a number, as another one."""
        is_short = len(record) <= _SHORT
        if is_short and not _is_whole(record, checksum):
            self._n_bad += 1
            return
        try:
            event = _event(record)
        except (IndexError, struct.error, UnicodeDecodeError):
            self._n_bad += 1
            return
        if event is None:
            return
        if (is_short or _is_whole(record, checksum)) and gate.is_time(np.array(event[0])):
            self.scalars.append(event)
        else:
            self._n_bad += 1


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _event(record: bytes) -> _Scalars | None:
    """When, at which step, and the numbers by tag; None where there is no number."""
    wall_s, step, values = 0.0, 0, dict[str, float]()
    for number, held in _fields(memoryview(record)):
        if number == 1 and isinstance(held, memoryview):
            wall_s = struct.unpack("<d", held)[0]
        elif number == 2 and isinstance(held, int):
            step = held
        elif number == 5 and isinstance(held, memoryview):
            values = dict(_summary(held))
    return (wall_s, float(step), values) if values else None


EventFiles = dict[Path, EventFile]  # those that were read before


def events_in(paths: list[Path], root: Path, known: EventFiles) -> tuple[list[Event], list[str]]:
    """The numbers of all files in the order in which they were written: files of one run interleave.

    A folder 'validation' says so of its tags. Folders beside each other that say nothing are runs, unless there are
    event files above them.
    """
    folders = {path: path.parent.relative_to(root).parts if path != root else () for path in paths}
    runs = {path: "/".join(part for part in parts if not _is_split(part)) for path, parts in folders.items()}
    is_one = len(set(runs.values())) == 1 or "" in runs.values()
    events: list[Event] = []
    for path, parts in folders.items():
        split = names.split_of("/".join(part for part in parts if is_one or _is_split(part)))
        run, file = "" if is_one else runs[path], known.setdefault(path, EventFile(path))
        file.read_on()
        for wall_s, step, values in file.scalars:
            events += [Event(run, wall_s, step, _called(tag, split), value) for tag, value in values.items()]
    remarks = [remark for path in paths for remark in known[path].remarks]
    return sorted(events, key=lambda event: event.wall_s), remarks


def _is_split(part: str) -> bool:
    """'train' is the part of a run, 'test_run_3' is a run."""
    return part.isalpha() and names.split_of(part) is not None


@lru_cache(maxsize=4096)
def _called(tag: str, split: str | None) -> str:
    """A tag as a column; what Keras calls 'epoch_loss' in a folder 'validation' is 'validation/epoch_loss'."""
    metric = names.metric_of(tag)
    return f"{split}/{tag}" if split is not None and metric is not None and metric.split is None else tag


def _summary(data: memoryview) -> Iterator[tuple[str, float]]:
    for number, held in _fields(data):
        if number == 1 and isinstance(held, memoryview):
            tag, value = None, None
            for inner, content in _fields(held):
                if inner == 1 and isinstance(content, memoryview):
                    tag = str(content, "utf-8")
                elif inner == 2 and isinstance(content, memoryview):
                    value = struct.unpack("<f", content)[0]
                elif inner == 8 and isinstance(content, memoryview):
                    value = _tensor(content)
            if tag is not None and value is not None:
                yield tag, value


def _tensor(data: memoryview) -> float | None:
    """The one number of a tensor; None for more than one, or another type."""
    dtype, content = 0, memoryview(b"")
    for number, held in _fields(data):
        if number == 1 and isinstance(held, int):
            dtype = held
        elif number in (4, 5, 6) and isinstance(held, memoryview):
            content = held
    if dtype == _FLOAT and len(content) == 4:
        return float(struct.unpack("<f", content)[0])
    if dtype == _DOUBLE and len(content) == 8:
        return float(struct.unpack("<d", content)[0])
    return None


def _fields(data: memoryview) -> Iterator[Field]:
    """The fields of a protocol buffer: whole numbers as such, all else as bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if kind == 2:
            size, position = _varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise IndexError(f"wire type {kind}")
        if position + size > len(data):
            raise IndexError("a field ends after its message")
        yield key >> 3, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 7 * _LONGEST_VARINT:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise IndexError("a number with too many bytes")


def _is_whole(record: bytes, checksum: bytes) -> bool:
    return bool(_CHECKSUM.unpack(checksum)[0] == _masked_crc(record))


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    """CRC-32C, turned by 15 bits and shifted, as the record format asks for."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
