"""Jobs from a CSV file (.csv or .csv.gz). What its columns are tells which of four forms it has:

- plain: name, submit_s, seconds, n_devices; optionally max_devices and exponent (speed grows with devices ** exponent);
- trainings whose speed is forecast: name, submit_s, model, batch_size, n_samples, n_epochs, n_devices;
- a workload of trainings, as Pollux': job, submit_time_s, application, num_gpus, batch_size, with the applications'
  measured tables; `set` and `workload` columns choose among several;
- a trace, as Philly's: timestamp, duration_s, num_gpus. Its rows are not in the order of time, so they are sorted. A
  job runs on as many devices as it had, or fewer in proportion.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO, cast

from traincast.errors import FileFormatError, InputError
from traincast.scheduling.applications import Application
from traincast.scheduling.job import Job
from traincast.scheduling.pollux_tables import training_job
from traincast.scheduling.profile import CountProfile, Profile, TrainingProfile, plain_profile

_PLAIN = ("name", "submit_s", "seconds", "n_devices")
_FORECAST = ("name", "submit_s", "model", "batch_size", "n_samples", "n_epochs", "n_devices")
_TRAINING = ("job", "submit_time_s", "application", "num_gpus", "batch_size")
_TRACE = ("timestamp", "duration_s", "num_gpus")
Row = Mapping[str, str]
Forecaster = Callable[[str, int, int, int], Profile]  # model, batch size, samples of an epoch, epochs


def read_jobs(
    path: str | Path,
    *,
    applications: Mapping[str, Application] | None = None,
    workload: str | None = None,
    forecast: Forecaster | None = None,
) -> list[Job]:
    """All jobs of a file, or those of one workload in it ('1', or 'realistic/1' with its set)."""
    path = Path(path)
    columns, rows = _read(path)
    if not rows:
        raise FileFormatError(f"'{path}' holds no jobs.")
    if set(_TRAINING) <= set(columns):
        return _trainings(path, _chosen(path, rows, workload), applications)
    if workload is not None:
        raise InputError(f"'{path}' holds one list of jobs: there is no workload {workload} to choose.")
    if set(_TRACE) <= set(columns):
        return _trace(path, rows)
    if set(_FORECAST) <= set(columns) and forecast is not None:
        return _forecasts(path, rows, forecast)
    if set(_PLAIN) <= set(columns):
        return _plain(path, rows)
    forms = "; or ".join(", ".join(form) for form in (_PLAIN, _FORECAST, _TRAINING, _TRACE))
    raise FileFormatError(f"'{path}' has the columns {', '.join(columns)}, and jobs need {forms}.")


def _read(path: Path) -> tuple[Sequence[str], list[tuple[int, Row]]]:
    try:
        with _open(path) as file:
            reader = csv.DictReader(file)
            return reader.fieldnames or (), list(enumerate(reader, start=2))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}.") from None
    except (UnicodeDecodeError, csv.Error, EOFError) as error:
        raise FileFormatError(f"'{path}' is not a CSV file: {error}.") from None


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", newline="", encoding="utf-8"))
    return path.open(newline="", encoding="utf-8")


def _chosen(path: Path, rows: list[tuple[int, Row]], workload: str | None) -> list[tuple[int, Row]]:
    """A file may hold several workloads; then one has to be named."""
    group = [(f"{row.get('set') or ''}/{row.get('workload') or ''}").strip("/") for _, row in rows]
    names = list(dict.fromkeys(group))
    wanted = names[0] if workload is None and len(names) == 1 else workload
    fitting = [name for name in names if wanted is not None and (name == wanted or name.endswith(f"/{wanted}"))]
    if not fitting:
        raise InputError(f"'{path}' holds the workloads {', '.join(names)}: choose one of them, not {workload}.")
    return [row for row, name in zip(rows, group, strict=True) if name == fitting[0]]


def _plain(path: Path, rows: list[tuple[int, Row]]) -> list[Job]:
    jobs: list[Job] = []
    for line, row in rows:
        n = _whole(path, line, row, "n_devices")
        most = _whole(path, line, row, "max_devices") if row.get("max_devices") else n
        exponent = _number(path, line, row, "exponent") if row.get("exponent") else 1.0
        seconds = _length(path, line, row, "seconds")
        if most < n or not 0 <= exponent <= 1:
            raise FileFormatError(
                f"'{path}', line {line}: max_devices should be at least n_devices, and exponent from 0 to 1."
            )
        profile = plain_profile(row["name"], seconds, n, max_devices=most, exponent=exponent)
        submit_s = _submit(path, line, row, "submit_s", jobs)
        jobs.append(Job(name=row["name"], submit_s=submit_s, profile=profile, n_devices=n))
    return jobs


def _forecasts(path: Path, rows: list[tuple[int, Row]], forecast: Forecaster) -> list[Job]:
    jobs: list[Job] = []
    for line, row in rows:
        numbers = [_whole(path, line, row, column) for column in ("batch_size", "n_samples", "n_epochs")]
        profile = forecast(row["model"], *numbers)
        n = _whole(path, line, row, "n_devices")
        if n > profile.max_devices:
            raise FileFormatError(
                f"'{path}', line {line}: {n} devices for a batch of {numbers[0]}: it can use {profile.max_devices}."
            )
        submit_s = _submit(path, line, row, "submit_s", jobs)
        jobs.append(Job(name=row["name"], submit_s=submit_s, profile=profile, n_devices=n))
    return jobs


def _trainings(path: Path, rows: list[tuple[int, Row]], applications: Mapping[str, Application] | None) -> list[Job]:
    if applications is None:
        raise InputError(f"'{path}' names applications: their measured tables are needed (--tables FOLDER).")
    profiles: dict[object, TrainingProfile] = {}
    jobs: list[Job] = []
    for line, row in rows:
        application = applications.get(row["application"])
        if application is None:
            known = ", ".join(sorted(applications))
            raise InputError(f"'{path}', line {line}: no application '{row['application']}' in the tables: {known}.")
        jobs.append(
            training_job(
                row["job"],
                _submit(path, line, row, "submit_time_s", jobs),
                application,
                _whole(path, line, row, "num_gpus"),
                _whole(path, line, row, "batch_size"),
                profiles,
            )
        )
    return jobs


def _trace(path: Path, rows: list[tuple[int, Row]]) -> list[Job]:
    """Jobs of one number of devices share a profile of one second; their length is their duration."""
    profiles: dict[int, CountProfile] = {}
    found = []
    for line, row in rows:
        n = _whole(path, line, row, "num_gpus")
        profiles.setdefault(n, plain_profile(f"{n} devices", 1.0, n))
        found.append((_moment(path, line, row["timestamp"]), n, _length(path, line, row, "duration_s"), line))
    found.sort()
    first_s = found[0][0]
    return [
        Job(name=f"job-{line}", submit_s=submit - first_s, profile=profiles[n], n_devices=n, length=seconds)
        for submit, n, seconds, line in found
    ]


def _moment(path: Path, line: int, text: str) -> float:
    try:
        return (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        raise FileFormatError(f"'{path}', line {line}: '{text}' is no time such as 2017-10-09 07:01:55.") from None


def _number(path: Path, line: int, row: Row, column: str) -> float:
    try:
        number = float(row[column])
    except (TypeError, ValueError):
        raise FileFormatError(f"'{path}', line {line}: {column} is '{row[column]}', not a number.") from None
    if not math.isfinite(number):
        raise FileFormatError(f"'{path}', line {line}: {column} is {number}: it should be finite.")
    return number


def _length(path: Path, line: int, row: Row, column: str) -> float:
    seconds = _number(path, line, row, column)
    if seconds <= 0:
        raise FileFormatError(f"'{path}', line {line}: a job of {seconds:g} s: {column} should be above 0.")
    return seconds


def _whole(path: Path, line: int, row: Row, column: str) -> int:
    number = _number(path, line, row, column)
    if not number.is_integer() or number < 1:
        raise FileFormatError(f"'{path}', line {line}: {column} is {row[column]}: it should be a whole number from 1.")
    return int(number)


def _submit(path: Path, line: int, row: Row, column: str, before: Sequence[Job]) -> float:
    submit_s = _number(path, line, row, column)
    if submit_s < 0:
        raise FileFormatError(f"'{path}', line {line}: {column} is {submit_s:g}: it should be 0 or later.")
    if before and submit_s < before[-1].submit_s:
        raise FileFormatError(
            f"'{path}', line {line}: {column} is {submit_s:g}, earlier than the line before "
            f"({before[-1].submit_s:g}): jobs should stand in the order of submission."
        )
    return submit_s
