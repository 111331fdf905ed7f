"""MLPerf's logs: ':::MLPv0.5.0', ':::MLL' (0.6) and ':::MLLOG' (0.7 and later) lines among others.

A line has a time, a key and a value, and with an evaluation the epoch, or in newer benchmarks the samples trained so
far. Where the samples of an epoch and the global batch are logged, both become steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from traincast.errors import NothingLoggedError
from traincast.logs import gate
from traincast.logs.sheet import Facts, RowCollector, Sheet

IS_MLPERF = re.compile(rb":::MLP?[LOGv0-9.]+\s")
_LINE = re.compile(
    r":::(?:MLPv[\d.]+\s+\S+\s+(?P<t5>[\d.]+)\s+\([^)]*\)|MLL\s+(?P<t6>[\d.]+))\s+(?P<key>\w+)(?::\s*(?P<value>.*))?$"
)
_JSON_LINE = re.compile(r":::MLLOG\s+(\{.*\})")
_EPOCH_KEYS = ("epoch_num", "epoch")
_SAMPLE_KEYS = ("samples_count", "trained_samples")
_METRICS = ("eval_accuracy", "eval_loss", "eval_error", "validation_loss", "train_accuracy", "train_loss")
_FACT_KEYS = {
    "global_batch_size": "batch", "input_batch_size": "batch", "train_samples": "train_samples",
    "preproc_num_train_examples": "train_samples", "input_size": "train_samples",
}  # fmt: skip


class MlperfReader:
    """Reads whole lines as they come; lines of other programs are passed over."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._events: list[tuple[float, str, float, Mapping[str, Any]]] = []
        self._known: dict[str, float] = {}
        self._start_s: float | None = None
        self._resumed_at: set[int] = set()
        self._n_bad = 0
        self._counts_samples = False

    def feed(self, data: bytes) -> None:
        for line in data.decode("utf-8", "replace").split("\n"):
            if ":::ML" in line:
                event = _event(line)
                if event is None:
                    self._n_bad += 1
                else:
                    self._take(*event)

    def _take(self, time_s: float, key: str, value: Any, details: Mapping[str, Any]) -> None:
        if key == "run_start":
            self._start_s = time_s
        number = _number(value)
        if number is None:
            return
        if key in _FACT_KEYS and (fact := gate.amount(number)) is not None:
            self._known.setdefault(_FACT_KEYS[key], fact)
        elif key in _METRICS:
            self._events.append((time_s, key, number, details))

    def resume(self) -> None:
        self._resumed_at.add(len(self._events))

    def sheets(self) -> list[Sheet]:
        rows, per_epoch = RowCollector(), self._steps_per_epoch
        start_s = self._start_s if self._start_s is not None else (self._events[0][0] if self._events else 0.0)
        for at, (time_s, key, value, details) in enumerate(self._events):
            if at in self._resumed_at:
                rows.resume()
            row = {key: value, "seconds": max(0.0, time_s - start_s)}
            row.update(self._position(details, per_epoch))
            if (rate := _number(details.get("lr"))) is not None:
                row["learning_rate"] = rate
            rows.add(row)
        if not rows.n_rows:
            raise NothingLoggedError(f"'{self._path}' has MLPerf lines, but none with an accuracy or a loss.")
        return [rows.sheet()]

    def _position(self, details: Mapping[str, Any], per_epoch: float | None) -> dict[str, float]:
        batch, n_samples = self._known.get("batch"), self._known.get("train_samples")
        samples = next((number for key in _SAMPLE_KEYS if (number := _number(details.get(key))) is not None), None)
        epoch = next((number for key in _EPOCH_KEYS if (number := _number(details.get(key))) is not None), None)
        if samples is None and epoch is not None and n_samples and epoch > 10_000:
            samples, epoch = epoch, None  # language models count samples under the name of epochs
        if samples is not None and batch:
            return {"step": samples / batch}
        if samples is not None:
            self._counts_samples = True
            return {"step": samples}
        if epoch is not None and per_epoch is not None and (step := _number(details.get("step_num"))) is not None:
            return {"step": step, "epoch": epoch}
        return {} if epoch is None else {"epoch": epoch}

    @property
    def _steps_per_epoch(self) -> float | None:
        batch, n_samples = self._known.get("batch"), self._known.get("train_samples")
        return n_samples / batch if batch and n_samples else None

    @property
    def facts(self) -> Facts:
        batch = self._known.get("batch")
        return Facts(steps_per_epoch=self._steps_per_epoch, batch_size=gate.whole(batch))

    @property
    def remarks(self) -> list[str]:
        found = [f"{self._n_bad} MLPerf lines cannot be read."] if self._n_bad else []
        if "batch" in self._known:
            found.append("The batch size is the logged one: some submitters log the batch per device.")
        if self._counts_samples:
            found.append("No batch size is logged: steps are samples here.")
        return found


def _event(line: str) -> tuple[float, str, Any, Mapping[str, Any]] | None:
    """Time, key, value and what else is said of it."""
    try:
        if modern := _JSON_LINE.search(line):
            logged = json.loads(modern[1])
            return (
                gate.number(logged["time_ms"]) / 1e3,
                str(logged["key"]),
                logged.get("value"),
                logged.get("metadata") or {},
            )
        old = _LINE.search(line.strip())
        if old is None:
            return None
        value = _value(old["value"])
        time_s = gate.number(old["t5"] or old["t6"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if isinstance(value, dict):
        details = value.get("metadata") if isinstance(value.get("metadata"), dict) else value
        return time_s, old["key"], value.get("value"), details or {}
    return time_s, old["key"], value, {}


def _value(text: str | None) -> Any:
    """JSON where it is; version 0.5 also logs bare words."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _number(value: Any) -> float | None:
    return gate.number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
