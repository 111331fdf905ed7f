"""JSON lines (our own, W&B's history) and the state that Hugging Face's Trainer leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from traincast.errors import FileFormatError, InputError, NothingLoggedError
from traincast.logs import gate, names
from traincast.logs.cells import value_in
from traincast.logs.sheet import Facts, RowCollector, Sheet

_WRAPPERS = ("data",)  # names that say nothing about what is in them
_DEEPEST = 3  # {"train": {"loss": ...}} is 'train/loss'; deeper trees are no metrics


class JsonLinesReader:
    """One object per line. Lines that are not are counted."""

    def __init__(self, path: str, columns: Mapping[str, str] | None = None) -> None:
        self._path = path
        self._roles = {given: role for role, given in (columns or {}).items()}
        self._seen: set[str] = set()
        self._rows = RowCollector()
        self._n_bad = 0

    def feed(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(without_word(line))
            except (ValueError, RecursionError):
                row = None
            self.add(row)

    def add(self, row: object) -> None:
        """One row, if it is an object."""
        if not isinstance(row, dict):
            self._n_bad += 1
            return
        flat = dict(_flat(_placed(row)))
        self._seen.update(flat)
        numbers, words = numbers_and_words({self._roles.get(name, name): value for name, value in flat.items()})
        if numbers:
            self._rows.add(numbers, words)

    def resume(self) -> None:
        self._rows.resume()

    def sheets(self) -> list[Sheet]:
        for given, role in self._roles.items():
            if given not in self._seen:
                raise InputError(
                    f"'{self._path}' has no key '{given}' for {role}: it has {', '.join(sorted(self._seen))}."
                )
        if not self._rows.n_rows:
            raise NothingLoggedError(f"'{self._path}' has no line that is a JSON object with numbers.")
        return [self._rows.sheet()]

    @property
    def facts(self) -> Facts:
        return Facts()

    @property
    def remarks(self) -> list[str]:
        return [f"{self._n_bad} lines are not JSON objects and are left out."] if self._n_bad else []


def without_word(line: bytes) -> bytes:
    """NVIDIA's DLLogger writes 'DLLL' before each object."""
    word, _, rest = line.lstrip().partition(b" ")
    return rest if word.isalpha() and rest.startswith(b"{") else line


def _placed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """DLLogger counts in lists: [epoch, step], [epoch] at its end, none in a summary of the run, which is no row."""
    step = row.get("step")
    if not isinstance(step, list):
        return row
    if not step:
        return {}
    place = dict(zip(("epoch", "step"), step, strict=False))
    return {**{name: value for name, value in row.items() if name != "step"}, **place}


def numbers_and_words(row: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """What can be a number, and the words that tell runs and splits apart."""
    numbers: dict[str, float] = {}
    words: dict[str, str] = {}
    for name, value in row.items():
        if names.plain(name) in (*names.RUN_NAMES, *names.SPLIT_COLUMNS):
            words[name] = str(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[name] = gate.number(value)
        elif isinstance(value, str) and (number := value_in(value)) == number:
            numbers[name] = number  # W&B writes "NaN" and "Infinity" as text
    return numbers, words


def _flat(row: Mapping[str, Any], above: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, above if name in _WRAPPERS else f"{above}{name}/", depth + 1)
        else:
            yield f"{above}{name}", value


def trainer_state(data: bytes, path: str) -> tuple[list[Sheet], Facts, list[str]]:
    """`trainer_state.json`: its log, its plan, and what to know about them."""
    try:
        state = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NothingLoggedError(f"'{path}' is not a complete JSON file: {error}.") from None
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise FileFormatError(f"'{path}' is not a Trainer's state: it has no list 'log_history'.")
    rows, remarks = RowCollector(), []
    for row in history:
        numbers, words = numbers_and_words(row) if isinstance(row, dict) else ({}, {})
        if "train_runtime" in numbers and numbers.pop("train_loss", None) is not None:
            remarks.append("The last row's train_loss is the mean of the whole run and is left out.")
        if numbers:
            rows.add(numbers, words)
    if not rows.n_rows:
        raise NothingLoggedError(f"'{path}' has an empty 'log_history'.")
    facts = Facts(
        total_steps=gate.whole(state.get("max_steps")),
        n_epochs=gate.amount(state.get("num_train_epochs")),
        batch_size=gate.whole(state.get("train_batch_size")),
    )
    if facts.batch_size is not None:
        remarks.append(f"The batch size {facts.batch_size} is per device, as the Trainer writes it.")
    return [rows.sheet()], facts, remarks
