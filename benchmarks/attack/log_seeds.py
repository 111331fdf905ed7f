"""Small valid logs, as the programs write them that traincast reads."""

from __future__ import annotations

import gzip
import json
import math
import struct

N_ROWS = 40


def _loss(step: int) -> float:
    return round(2.2 * (1 + step / 10) ** -0.5 + 0.02 * math.sin(7 * step), 4)


def _accuracy(step: int) -> float:
    return round(1 - 0.8 * (1 + step / 10) ** -0.5, 4)


def _steps() -> range:
    return range(10, 10 * N_ROWS + 1, 10)


def csv_log() -> bytes:
    rows = [f"{step // 100},{step},{_loss(step)},{_accuracy(step)},0.1,{1.5 * step:g}" for step in _steps()]
    return "\n".join(["epoch,step,loss,val_accuracy,lr,seconds", *rows, ""]).encode()


def gzipped_csv() -> bytes:
    return gzip.compress(csv_log(), mtime=0)


def lightning_csv() -> bytes:
    """Of Lightning's CSVLogger: rows of training and of validation take turns, and leave the others' cells empty."""
    rows = []
    for step in _steps():
        rows.append(f"{step // 100},{step},{_loss(step)},,")
        rows.append(f"{step // 100},{step},,{_loss(step) + 0.1:.4f},{_accuracy(step)}")
    return "\n".join(["epoch,step,train_loss_step,val_loss,val_acc", *rows, ""]).encode()


def json_lines() -> bytes:
    rows = [
        {"step": step, "loss": _loss(step), "accuracy": _accuracy(step), "_timestamp": 1.7e9 + step}
        for step in _steps()
    ]
    return "\n".join(map(json.dumps, rows)).encode()


def keras_history() -> bytes:
    steps = list(_steps())
    return json.dumps(
        {"loss": [_loss(step) for step in steps], "val_accuracy": [_accuracy(step) for step in steps]}
    ).encode()


def trainer_state() -> bytes:
    """Of Hugging Face's Trainer."""
    history: list[dict[str, float]] = [
        {"epoch": step / 100, "step": step, "loss": _loss(step), "learning_rate": 1e-4 * (1 - step / 800)}
        for step in _steps()
    ]
    history += [{"epoch": step / 100, "step": step, "eval_loss": _loss(step)} for step in (100, 200, 300, 400)]
    about = {"max_steps": 800, "num_train_epochs": 8, "global_step": 400, "logging_steps": 10}
    return json.dumps({**about, "log_history": history}, indent=2).encode()


def text_log() -> bytes:
    rows = [
        f"2026-11-16 07:{step // 60:02}:{step % 60:02} Epoch [{step // 100}/8] step {step}/800 loss: {_loss(step)} "
        f"acc={100 * _accuracy(step):.2f}% lr=0.1 0.25 s/it"
        for step in _steps()
    ]
    return "\n".join(["Begin of training", *rows, ""]).encode()


def mlperf_log() -> bytes:
    def line(step: int, key: str, value: object, **about: object) -> str:
        return ":::MLLOG " + json.dumps(
            {"time_ms": 1_700_000_000_000 + 1000 * step, "key": key, "value": value, "metadata": about}
        )

    rows = [line(0, "global_batch_size", 256), line(0, "train_samples", 25600), line(0, "run_start", None)]
    rows += [line(step, "eval_accuracy", _accuracy(step), epoch_num=step / 100) for step in _steps()]
    return "\n".join([*rows, line(500, "run_stop", "success"), ""]).encode()


def wandb_csv() -> bytes:
    """What the page of Weights & Biases exports of a chart."""
    rows = [f'"{step}","{_loss(step)}","{_loss(step)}","{_loss(step)}"' for step in _steps()]
    return "\n".join(
        ['"Step","run-1 - train/loss","run-1 - train/loss__MIN","run-1 - train/loss__MAX"', *rows]
    ).encode()


def event_file() -> bytes:
    """Of TensorBoard."""
    return b"".join(event_record(_event(1.7e9 + step, step, "train/loss", _loss(step))) for step in _steps())


def event_record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _sum(length) + data + _sum(data)


def _event(wall_s: float, step: int, tag: str, value: float) -> bytes:
    content = bytes([2 << 3 | 5]) + struct.pack("<f", value)
    summary = _field(1, _field(1, tag.encode()) + content)
    return bytes([1 << 3 | 1]) + struct.pack("<d", wall_s) + bytes([2 << 3]) + _varint(step) + _field(5, summary)


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def _sum(data: bytes) -> bytes:
    """The masked CRC-32C that follows a record."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
