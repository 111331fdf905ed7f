"""The tables of Pollux' simulator as CSV files: step times, gradient statistics and workloads.

Its rules (petuum/adaptdl, branch osdi21-artifact): an application is done after the epochs of its table; the progress
of an epoch is the least over its batch sizes; yolov3 takes at most 8 samples a device at once; ncf runs on one device
and keeps its batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError
from traincast.scheduling.applications import Application, Learning
from traincast.scheduling.job import Job
from traincast.scheduling.jobs_row import Row
from traincast.scheduling.jobs_table import read_rows
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
    if not found:
        raise FileFormatError(f"'{folder / STEPS_FILE}' and '{LEARNING_FILE}' beside it have no application in common.")
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
    for row in _rows(path, ("app", "placement", "num_nodes", "num_gpus", "local_batch", "step_time_s", "sync_time_s")):
        one = StepRow(
            shape=_shape(row),
            n_nodes=row.whole("num_nodes"),
            n_devices=row.whole("num_gpus"),
            local_batch=row.whole("local_batch"),
            step_s=row.number("step_time_s"),
            sync_s=row.number("sync_time_s"),
        )
        if one.step_s <= 0 or not 0 <= one.sync_s <= one.step_s:
            raise row.wrong(f"a step of {one.step_s} s with {one.sync_s} s of waiting")
        rows.setdefault(row.text("app"), []).append(one)
    return {name: measured_steps(name, found) for name, found in rows.items()}


def _shape(row: Row) -> tuple[int, ...] | None:
    """A digit for each node, the devices there; a cell without any is an even placement."""
    digits = row.text("placement").removesuffix(".0") if row.has("placement") else ""
    if digits and not (digits.isascii() and digits.isdecimal()):
        raise row.wrong(f"placement is '{digits}', not one digit per node such as 44")
    return tuple(map(int, digits)) or None


def _read_learning(path: Path) -> dict[str, Learning]:
    found: dict[str, dict[int, list[tuple[float, float, float]]]] = {}
    for row in _rows(path, ("app", "batch_size", "epoch", "progress", "grad_sqr", "grad_var")):
        values = (row.number("progress"), row.number("grad_sqr"), row.number("grad_var"))
        found.setdefault(row.text("app"), {}).setdefault(row.whole("batch_size"), []).append(values)
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


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    there, rows = read_rows(path)
    missing = [name for name in columns if name not in there]
    if missing:
        raise FileFormatError(f"'{path}' has no column {missing[0]}: it needs {', '.join(columns)}.")
    for row in rows:
        if any(row.cells[name] is None for name in columns):
            raise row.wrong("it has fewer cells than the header")
        yield row
