"""Tables of measured epochs: what a row is, how steps make an epoch, and how a file is read.

A file has the global batch, the number of devices, and seconds of an epoch or of a step. Headers may be written with
spaces, capitals and units in brackets. Other columns are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.scaling.number_table import Row, read_rows
from traincast.trace.graph import Floats

_ALIASES: dict[str, tuple[str, ...]] = {  # by the words that an error has for them
    "the global batch size": ("batch", "batch_size", "global_batch", "global_batch_size"),
    "the number of devices": ("gpus", "n_gpus", "num_gpus", "devices", "n_devices", "num_devices", "gpu_count"),
    "the seconds of an epoch": ("epoch_s", "epoch_seconds", "epoch_time", "epoch_time_s", "epoch", "seconds_per_epoch"),
    "the seconds of a step": ("step_s", "step_seconds", "step_time", "step_time_s", "step", "seconds_per_step"),
    "the steps of an epoch": (
        "iterations", "n_iterations", "iterations_per_epoch", "n_steps", "steps_per_epoch", "steps",
    ),
}  # fmt: skip
StepTime = Callable[[Floats, Floats], Floats]  # seconds of a step by global batch and number of devices
_BATCH, _DEVICES, _EPOCH, _STEP, _ITERATIONS = _ALIASES
_NEEDED = ((_BATCH,), (_DEVICES,), (_EPOCH, _STEP))


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
    for line in read_rows(path, _ALIASES, needed=_NEEDED):
        row = _epoch(line, n_samples)
        key = (row.batch_size, row.n_devices)
        if key in rows:
            raise FileFormatError(
                f"{row.where}: batch {row.batch_size} on {row.n_devices} devices occurs twice (first in "
                f"{rows[key].where})."
            )
        rows[key] = row
    if not rows:
        raise FileFormatError(f"'{path}' has no measured rows.")
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
        raise InputError(f"{wrong}{row.n_iterations}: the batch seems to be per device but should be global.")
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
                raise InputError(f"{row.where}: batch {row.batch_size} has two rows for a single device.")
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
    notes = (f"Batch {size} has no single-device row to compare with and is left out." for size in missing)
    return tuple(row for row in rows if row.batch_size in one_s), tuple(notes)


def compared_with_s(rows: Sequence[MeasuredEpoch]) -> list[float]:
    """For each row the seconds of its batch on one device."""
    one_s = one_device_s(rows)
    for row in rows:
        if row.batch_size not in one_s:
            raise InputError(
                f"{row.where}: batch {row.batch_size} has no single-device row to compare with: add one, or "
                "remove this batch."
            )
    return [one_s[row.batch_size] for row in rows]


def _epoch(line: Row, n_samples: int | None) -> MeasuredEpoch:
    batch_size, n_devices = line.whole(_BATCH), line.whole(_DEVICES)
    if _ITERATIONS in line:
        n_iterations = line.whole(_ITERATIONS)
    elif n_samples is not None:
        n_iterations = -(-n_samples // batch_size)
    else:
        raise InputError(
            f"{line.where}: the steps per epoch are unknown. Give the number of samples, or a column 'iterations'."
        )
    epoch_s = line.number(_EPOCH) if _EPOCH in line else line.number(_STEP) * n_iterations
    row = MeasuredEpoch(
        batch_size=batch_size, n_devices=n_devices, epoch_s=epoch_s, n_iterations=n_iterations, where=line.where
    )
    check_iterations(row, n_samples)
    return row
