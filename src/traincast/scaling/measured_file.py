"""Tables of measured epochs: what a row is, how steps make an epoch, and how a file is read.

A file has the global batch, the number of devices, and seconds of an epoch or of a step. Headers may be written with
spaces, capitals and units in brackets. Other columns are left alone.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.trace.graph import Floats

_ALIASES: dict[str, tuple[str, ...]] = {
    "global batch size": ("batch", "batch_size", "global_batch", "global_batch_size"),
    "number of devices": ("gpus", "n_gpus", "num_gpus", "devices", "n_devices", "num_devices", "gpu_count"),
    "seconds of an epoch": ("epoch_s", "epoch_seconds", "epoch_time", "epoch_time_s", "epoch", "seconds_per_epoch"),
    "seconds of a step": ("step_s", "step_seconds", "step_time", "step_time_s", "step", "seconds_per_step"),
    "steps of an epoch": ("iterations", "n_iterations", "iterations_per_epoch", "n_steps", "steps_per_epoch", "steps"),
}
StepTime = Callable[[Floats, Floats], Floats]  # seconds of a step by global batch and number of devices
_BATCH, _DEVICES, _EPOCH, _STEP, _ITERATIONS = _ALIASES


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEpoch:
    """One row: seconds of an epoch at a global batch size on some devices; `where` names it in an error."""

    batch_size: int
    n_devices: int
    epoch_s: float
    n_iterations: int
    where: str = "A row"

    def __post_init__(self) -> None:
        for name in ("batch_size", "n_devices", "epoch_s", "n_iterations"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{self.where}: {name} must be above 0, not {getattr(self, name):g}.")


def read_measured(path: str | Path, *, n_samples: int | None = None) -> tuple[MeasuredEpoch, ...]:
    """The rows of a CSV file. Without a column for the steps of an epoch, `n_samples` tells how many there are."""
    rows: dict[tuple[int, int], MeasuredEpoch] = {}
    for where, cells in _cells(Path(path)):
        row = _row(where, cells, n_samples)
        key = (row.batch_size, row.n_devices)
        if key in rows:
            raise FileFormatError(
                f"{where}: batch {row.batch_size} on {row.n_devices} devices was there before ({rows[key].where})."
            )
        rows[key] = row
    if not rows:
        raise FileFormatError(f"'{path}' holds no measured rows.")
    return tuple(rows.values())


def check_iterations(row: MeasuredEpoch, n_samples: int | None) -> None:
    """An epoch has the same number of steps on any number of devices, because the batch is global."""
    if n_samples is None:
        return
    full, rest = divmod(n_samples, row.batch_size)
    if row.n_iterations in (full, full + bool(rest)):
        return
    wrong = f"{row.where}: {n_samples} samples in batches of {row.batch_size} make {full + bool(rest)} steps, not "
    if row.n_iterations == -(-n_samples // (row.batch_size * row.n_devices)):
        raise InputError(f"{wrong}{row.n_iterations}: the batch seems to be per device, and should be global.")
    raise InputError(f"{wrong}{row.n_iterations}.")


def epoch_sum(rows: Sequence[MeasuredEpoch], n_samples: int | None = None) -> Callable[[StepTime], Floats]:
    """A function from a model of a step to the seconds of each row's epoch; the last batch is what is left over."""
    batch, n_devices, iterations = np.array(
        [(row.batch_size, row.n_devices, row.n_iterations) for row in rows], float
    ).T
    full = iterations if n_samples is None else np.minimum(n_samples // batch, iterations)
    rest = np.zeros_like(batch) if n_samples is None else n_samples - full * batch
    batches, counts = np.concatenate([batch, np.maximum(rest, 1.0)]), np.tile(n_devices, 2)

    def sum_s(step_s: StepTime) -> Floats:
        full_s, rest_s = step_s(batches, counts).reshape(2, -1)
        return full * full_s + (iterations - full) * rest_s

    return sum_s


def one_device_s(rows: Sequence[MeasuredEpoch]) -> dict[int, float]:
    """Seconds of an epoch on one device by batch size."""
    found: dict[int, float] = {}
    for row in rows:
        if row.n_devices == 1:
            if row.batch_size in found:
                raise InputError(f"{row.where}: batch {row.batch_size} has two rows on one device.")
            found[row.batch_size] = row.epoch_s
    return found


def comparable(rows: Sequence[MeasuredEpoch]) -> tuple[tuple[MeasuredEpoch, ...], tuple[str, ...]]:
    """The rows whose batch was measured on one device too, and a sentence about each batch that was not.

    Where there is no such batch at all, every row is left for `compared_with_s` to complain about.
    """
    one_s = one_device_s(rows)
    if not one_s:
        return tuple(rows), ()
    missing = dict.fromkeys(row.batch_size for row in rows if row.batch_size not in one_s)
    notes = (f"Batch {size} has no row on one device to compare with and is left out." for size in missing)
    return tuple(row for row in rows if row.batch_size in one_s), tuple(notes)


def compared_with_s(rows: Sequence[MeasuredEpoch]) -> list[float]:
    """For each row the seconds of its batch on one device."""
    one_s = one_device_s(rows)
    for row in rows:
        if row.batch_size not in one_s:
            raise InputError(
                f"{row.where}: batch {row.batch_size} has no row on one device to compare with: add it, or leave the "
                "batch out."
            )
    return [one_s[row.batch_size] for row in rows]


def _row(where: str, cells: Mapping[str, str], n_samples: int | None) -> MeasuredEpoch:
    batch_size, n_devices = _whole(cells, _BATCH, where), _whole(cells, _DEVICES, where)
    if _ITERATIONS in cells:
        n_iterations = _whole(cells, _ITERATIONS, where)
    elif n_samples is not None:
        n_iterations = -(-n_samples // batch_size)
    else:
        raise InputError(f"{where}: how many steps is an epoch? Give the number of samples, or a column 'iterations'.")
    epoch_s = _number(cells, _EPOCH, where) if _EPOCH in cells else _number(cells, _STEP, where) * n_iterations
    row = MeasuredEpoch(
        batch_size=batch_size, n_devices=n_devices, epoch_s=epoch_s, n_iterations=n_iterations, where=where
    )
    check_iterations(row, n_samples)
    return row


def _cells(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each line's cells by what they mean, with the words that name the line in an error."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"'{path}' cannot be read as a text file.") from None
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        meanings = _meanings(next(reader, []), str(path))
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"'{path}', line {reader.line_num}"
            if len(cells) != len(meanings):
                raise FileFormatError(f"{where}: {len(cells)} cells where the header has {len(meanings)}.")
            yield where, {meaning: cell for meaning, cell in zip(meanings, cells, strict=True) if meaning}
    except csv.Error as error:
        raise FileFormatError(f"'{path}' is not a CSV table: {error} in line {reader.line_num}.") from None


def _meanings(header: list[str], file: str) -> list[str]:
    """What each column means; empty where it means nothing to us."""
    names = [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in header]
    meanings = [next((meaning for meaning, known in _ALIASES.items() if name in known), "") for name in names]
    for meaning in _ALIASES:
        if meanings.count(meaning) > 1:
            raise FileFormatError(f"'{file}', line 1: two columns give the {meaning}.")
    for needed in ((_BATCH,), (_DEVICES,), (_EPOCH, _STEP)):
        if not set(needed) & set(meanings):
            known = " or ".join(f"'{_ALIASES[meaning][0]}'" for meaning in needed)
            found = ", ".join(name.strip() for name in header) or "nothing"
            raise FileFormatError(f"'{file}', line 1: no column for the {needed[0]}, such as {known}; found {found}.")
    return meanings


def _number(cells: Mapping[str, str], meaning: str, where: str) -> float:
    text = cells[meaning].strip()
    try:
        value = float(text)
    except ValueError:
        raise FileFormatError(f"{where}: the {meaning} is '{text}', not a number.") from None
    if not 0 < value < math.inf:
        raise FileFormatError(f"{where}: the {meaning} must be above 0, not {text}.")
    return value


def _whole(cells: Mapping[str, str], meaning: str, where: str) -> int:
    value = _number(cells, meaning, where)
    if not value.is_integer():
        raise FileFormatError(f"{where}: the {meaning} must be a whole number, not {cells[meaning].strip()}.")
    return int(value)
