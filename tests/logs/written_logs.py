"""Logs as the programs write them, small enough to check by eye."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

SPLIT_EPOCH = 4  # steps of an epoch in the small tables


def table(path: Path, header: str, rows) -> Path:
    """A CSV file of rows of numbers; None is an empty cell."""
    lines = [",".join("" if cell is None else f"{cell:g}" for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def batches(rng, n_epochs: int, n_steps: int, *, noise: float = 0.1):
    """Losses of single batches, one row an epoch."""
    steps = np.arange(1.0, n_epochs * n_steps + 1)
    losses = 2.2 * (1 + steps / n_steps) ** -0.5 + 0.1 + noise * rng.standard_normal(len(steps))
    return losses.reshape(n_epochs, n_steps)


def means_since_start(of_batches):
    """What a log shows that averages since the start of the epoch."""
    return np.cumsum(of_batches, axis=1) / np.arange(1, of_batches.shape[1] + 1)


def event_file(path: Path, events, *, as_tensor: bool = False) -> Path:
    """TensorBoard's records of (wall time, step, tag, value)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(_record(_event(*event, as_tensor=as_tensor)) for event in events))
    return path


def batched_event_file(path: Path, events) -> Path:
    """Records of (wall time, step, {tag: value}), each with many numbers."""
    path.write_bytes(
        b"".join(
            _record(
                bytes([1 << 3 | 1])
                + struct.pack("<d", wall_s)
                + bytes([2 << 3])
                + _varint(step)
                + _bytes_field(5, b"".join(_value(tag, value, as_tensor=False) for tag, value in values.items()))
            )
            for wall_s, step, values in events
        )
    )
    return path


def _event(wall_s: float, step: int, tag: str, value: float, *, as_tensor: bool) -> bytes:
    summary = _value(tag, value, as_tensor=as_tensor)
    return bytes([1 << 3 | 1]) + struct.pack("<d", wall_s) + bytes([2 << 3]) + _varint(step) + _bytes_field(5, summary)


def _value(tag: str, value: float, *, as_tensor: bool) -> bytes:
    number = struct.pack("<f", value)
    tensor = b"\x08\x01" + _bytes_field(2, b"") + _bytes_field(5, number)  # type float, shape of a scalar
    content = _bytes_field(8, tensor) if as_tensor else bytes([2 << 3 | 5]) + number
    return _bytes_field(1, _bytes_field(1, tag.encode()) + content)


def _bytes_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked_crc(length)) + data + struct.pack("<I", _masked_crc(data))


def _masked_crc(data: bytes) -> int:
    """CRC-32C bit by bit: written apart from the reader, so that both cannot be wrong in the same way."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
