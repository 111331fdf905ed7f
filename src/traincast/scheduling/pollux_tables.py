"""The tables of Pollux' simulator as CSV files: step times, gradient statistics and workloads.

Its rules (petuum/adaptdl, branch osdi21-artifact): an application is done after the epochs of its table; the progress
of an epoch is the least over its batch sizes; yolov3 takes at most 8 samples a device at once; ncf runs on one device
and keeps its batch.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.report.input_files import regular
from traincast.scheduling.applications import Application, Learning
from traincast.scheduling.job import Job
from traincast.scheduling.measured_steps import MeasuredSteps, StepRow, measured_steps
from traincast.scheduling.profile import TrainingProfile

STEPS_FILE = "pollux_t4_steps.csv"
LEARNING_FILE = "pollux_gradient_statistics.csv"
KIND = "T4"  # on which these steps were measured
_MOST_LOCAL = {"yolov3": 8}
_ONE_DEVICE = {"ncf"}


def read_applications(folder: Path, kind: str = KIND) -> dict[str, Application]:
    """Every application of both tables in a folder; `kind` is how the cluster spells the type they were measured on."""
    steps = _read_steps(folder / STEPS_FILE)
    learning = _read_learning(folder / LEARNING_FILE)
    found = {}
    for name in steps:
        if name in learning:
            table = steps[name]
            found[name] = Application(
                name=name,
                steps={kind: table},
                learning=learning[name],
                max_local_batch=_MOST_LOCAL.get(name, table.largest_batch),
                min_local_batch=table.smallest_batch,
                max_devices=1 if name in _ONE_DEVICE else table.max_devices,
            )
    return found


def training_job(
    name: str,
    submit_s: float,
    application: Application,
    n_devices: int,
    batch: int,
    profiles: dict[object, TrainingProfile],
) -> Job:
    """A job of a workload. Equal jobs share their profiles."""
    fixed = profiles.setdefault((application.name, batch), TrainingProfile(application, batch))
    may_adapt = application.max_devices > 1
    adaptive = profiles.setdefault((application.name, None), TrainingProfile(application, None)) if may_adapt else None
    return Job(name=name, submit_s=submit_s, profile=fixed, n_devices=n_devices, adaptive=adaptive)


def _read_steps(path: Path) -> dict[str, MeasuredSteps]:
    rows: dict[str, list[StepRow]] = {}
    for line, row in _rows(
        path, ("app", "placement", "num_nodes", "num_gpus", "local_batch", "step_time_s", "sync_time_s")
    ):
        digits = row["placement"].removesuffix(".0")
        try:
            one = StepRow(
                shape=tuple(int(digit) for digit in digits) if digits else None,
                n_nodes=int(row["num_nodes"]),
                n_devices=int(row["num_gpus"]),
                local_batch=int(row["local_batch"]),
                step_s=float(row["step_time_s"]),
                sync_s=float(row["sync_time_s"]),
            )
        except ValueError as error:
            raise FileFormatError(f"'{path}', line {line}: {error}.") from None
        if min(one.n_nodes, one.n_devices, one.local_batch) < 1:
            raise FileFormatError(f"'{path}', line {line}: nodes, devices and samples of each should be at least 1.")
        if not 0 < one.step_s < math.inf or not 0 <= one.sync_s <= one.step_s:
            raise FileFormatError(f"'{path}', line {line}: a step of {one.step_s} s with {one.sync_s} s of waiting.")
        rows.setdefault(row["app"], []).append(one)
    return {name: measured_steps(name, found) for name, found in rows.items()}


def _read_learning(path: Path) -> dict[str, Learning]:
    found: dict[str, dict[int, list[tuple[float, float, float]]]] = {}
    for line, row in _rows(path, ("app", "batch_size", "epoch", "progress", "grad_sqr", "grad_var")):
        try:
            values = (float(row["progress"]), float(row["grad_sqr"]), float(row["grad_var"]))
            epochs = found.setdefault(row["app"], {}).setdefault(int(row["batch_size"]), [])
        except ValueError as error:
            raise FileFormatError(f"'{path}', line {line}: {error}.") from None
        if not all(map(math.isfinite, values)):
            raise FileFormatError(f"'{path}', line {line}: progress and gradients should be finite numbers.")
        epochs.append(values)
    return {name: _learning(path, name, by_batch) for name, by_batch in found.items()}


def _learning(path: Path, name: str, by_batch: Mapping[int, list[tuple[float, float, float]]]) -> Learning:
    batches = sorted(by_batch)
    n_epochs = min(len(by_batch[batch]) for batch in batches)
    table = np.array([by_batch[batch][:n_epochs] for batch in batches])
    reached = table[:, :, 0].min(axis=0)
    progress = np.diff(reached, prepend=0.0)
    if not (progress > 0).all():
        raise FileFormatError(f"'{path}': the progress of '{name}' does not grow from epoch to epoch.")
    return Learning(
        batches=np.array(batches, dtype=float), progress=progress, grad_sqr=table[:, :, 1], grad_var=table[:, :, 2]
    )


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise FileFormatError(f"'{path}' has no column {missing[0]}: it needs {', '.join(columns)}.")
            for line, row in enumerate(reader, start=2):
                if any(row[name] is None for name in columns):
                    raise FileFormatError(f"'{path}', line {line} has fewer cells than the header.")
                yield line, row
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"'{path}' is not a CSV file: {error}.") from None
