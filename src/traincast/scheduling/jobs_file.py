"""Jobs from a CSV file (.csv or .csv.gz). What its columns are tells which of five forms it has:

- plain: name, submit_s, seconds, n_devices; optionally max_devices and exponent (speed grows with devices ** exponent);
- trainings whose speed is forecast: name, submit_s, model, batch_size, n_samples, n_epochs, n_devices;
- trainings with parameter servers: name, submit_s, mode, theta, loss, target_loss, expected_steps, n_servers,
  n_workers; batch_size too where the mode is sync, and optionally max_devices;
- a workload of trainings, as Pollux': job, submit_time_s, application, num_gpus, batch_size, with the applications'
  measured tables; `set` and `workload` columns choose among several;
- a trace, as Philly's: timestamp, duration_s, num_gpus. Its rows are not in the order of time, so they are sorted. A
  job runs on as many devices as it had, or fewer in proportion.

In each of them steps_p10 and steps_p90 may say how uncertain a job's length is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from traincast.errors import FileFormatError, InputError
from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.applications import Application
from traincast.scheduling.job import Job
from traincast.scheduling.jobs_row import Row
from traincast.scheduling.jobs_table import Form, check_names, form_of, read_rows
from traincast.scheduling.pollux_tables import training_job
from traincast.scheduling.profile import PlainProfile, Profile, ServersProfile, TrainingProfile, plain_profile

_UNCERTAIN = ("steps_p10", "steps_p90")
_PLAIN = Form(("name", "submit_s", "seconds", "n_devices"), ("max_devices", "exponent", *_UNCERTAIN))
_FORECAST = Form(("name", "submit_s", "model", "batch_size", "n_samples", "n_epochs", "n_devices"), _UNCERTAIN)
_SERVERS = Form(
    (
        *("name", "submit_s", "mode", "theta", "loss", "target_loss", "expected_steps"),
        *("n_servers", "n_workers"),
    ),
    ("batch_size", "max_devices", *_UNCERTAIN),
)
_TRAINING = Form(
    ("job", "submit_time_s", "application", "num_gpus", "batch_size"),
    ("set", "workload", *_UNCERTAIN),
    is_foreign=True,
)
_TRACE = Form(("timestamp", "duration_s", "num_gpus"), _UNCERTAIN, is_foreign=True)
_FORMS = (_TRAINING, _TRACE, _SERVERS, _FORECAST, _PLAIN)
_MOST_PLACES = 64  # of a training with servers that names no max_devices
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
    columns, rows = read_rows(path)
    if not rows:
        raise FileFormatError(f"'{path}' has no jobs.")
    form = form_of(path, columns, _FORMS)
    if form is _TRAINING:
        chosen = _chosen(path, rows, workload)
        check_names("job", chosen)
        return _trainings(chosen, applications)
    if workload is not None:
        raise InputError(f"'{path}' has a single list of jobs, so there is no workload {workload} to choose.")
    if applications is not None:
        raise InputError(f"'{path}' names no applications, so it cannot use measured tables.")
    if form is _TRACE:
        return _trace(rows)
    check_names("name", rows)
    if form is _SERVERS:
        return _with_servers(rows)
    if form is _PLAIN:
        return _plain(rows)
    if forecast is None:
        raise InputError(f"'{path}' has training runs that need a forecast, which is not available here.")
    return _forecasts(rows, forecast)


def _chosen(path: Path, rows: list[Row], workload: str | None) -> list[Row]:
    """A file may hold several workloads; then one has to be named."""
    group = [(f"{row.cells.get('set') or ''}/{row.cells.get('workload') or ''}").strip("/") for row in rows]
    names = list(dict.fromkeys(group))
    wanted = names[0] if workload is None and len(names) == 1 else workload
    fitting = [name for name in names if name == wanted] or [name for name in names if name.endswith(f"/{wanted}")]
    if not fitting or wanted is None:
        raise InputError(f"'{path}' has the workloads {', '.join(names)}: choose one of them, not {workload}.")
    if len(fitting) > 1:
        raise InputError(f"'{path}' has several workloads {workload}: {', '.join(fitting)}. Choose one of them.")
    return [row for row, name in zip(rows, group, strict=True) if name == fitting[0]]


def _plain(rows: list[Row]) -> list[Job]:
    jobs: list[Job] = []
    for row in rows:
        n = row.whole("n_devices")
        most = row.whole("max_devices") if row.has("max_devices") else n
        exponent = row.number("exponent") if row.has("exponent") else 1.0
        if most < n or not 0 <= exponent <= 1:
            raise row.wrong("max_devices should be at least n_devices, and exponent from 0 to 1")
        name = row.text("name")
        profile = plain_profile(name, row.seconds("seconds"), n, max_devices=most, exponent=exponent)
        submit_s = row.submit_s("submit_s", jobs)
        jobs.append(Job(name=name, submit_s=submit_s, profile=profile, n_devices=n, work_sigma=row.work_sigma))
    return jobs


def _forecasts(rows: list[Row], forecast: Forecaster) -> list[Job]:
    jobs: list[Job] = []
    for row in rows:
        batch_size = row.whole("batch_size")
        n = row.whole("n_devices")
        if n > batch_size:
            raise row.wrong(f"{n} devices for a batch of {batch_size}: it can use {batch_size}")
        counts = (batch_size, row.whole("n_samples"), row.whole("n_epochs"))
        with row.blamed():
            profile = forecast(row.text("model"), *counts)
        if n > profile.max_devices:
            raise row.wrong(f"{n} devices: '{row.text('model')}' fits on at most {profile.max_devices} of a type")
        submit_s = row.submit_s("submit_s", jobs)
        jobs.append(
            Job(name=row.text("name"), submit_s=submit_s, profile=profile, n_devices=n, work_sigma=row.work_sigma)
        )
    return jobs


def _with_servers(rows: list[Row]) -> list[Job]:
    jobs: list[Job] = []
    for row in rows:
        asked = (row.whole("n_servers"), row.whole("n_workers"))
        with row.blamed():
            profile = ServersProfile(
                name=row.text("name"),
                speed=SpeedModel(
                    mode=row.text("mode"),  # type: ignore[arg-type]  # the model itself says what is none
                    theta=row.numbers("theta"),
                    batch_size=row.number("batch_size") if row.has("batch_size") else None,
                ),
                loss=_three(row),
                target_loss=row.number("target_loss"),
                expected_steps=row.number("expected_steps"),
                max_devices=row.whole("max_devices") if row.has("max_devices") else max(_MOST_PLACES, sum(asked)),
                asked=asked,
            )
        jobs.append(
            Job(
                name=profile.name,
                submit_s=row.submit_s("submit_s", jobs),
                profile=profile,
                n_devices=sum(asked),
                work_sigma=row.work_sigma,
            )
        )
    return jobs


def _three(row: Row) -> tuple[float, float, float]:
    found = row.numbers("loss")
    if len(found) != 3:
        raise row.wrong(f"loss has {len(found)} numbers: it should have b0, b1 and b2 of 1/(b0 k + b1) + b2")
    return found[0], found[1], found[2]


def _trainings(rows: list[Row], applications: Mapping[str, Application] | None) -> list[Job]:
    if applications is None:
        raise InputError(f"'{rows[0].path}' names applications: give the folder of their measured tables, too.")
    profiles: dict[object, TrainingProfile] = {}
    jobs: list[Job] = []
    for row in rows:
        application = applications.get(row.text("application"))
        if application is None:
            known = ", ".join(sorted(applications))
            what = f"no application '{row.text('application')}' in the tables: {known}"
            raise InputError(str(row.wrong(what)))
        job = training_job(
            row.text("job"),
            row.submit_s("submit_time_s", jobs),
            application,
            row.whole("num_gpus"),
            row.whole("batch_size"),
            profiles,
        )
        jobs.append(replace(job, work_sigma=row.work_sigma))
    return jobs


def _trace(rows: list[Row]) -> list[Job]:
    """Jobs of one number of devices share a profile of one second; their length is their duration."""
    profiles: dict[int, PlainProfile] = {}
    found = []
    for row in rows:
        n = row.whole("num_gpus")
        profiles.setdefault(n, plain_profile(f"{n} devices", 1.0, n))
        found.append((row.moment_s("timestamp"), n, row.seconds("duration_s"), row))
    found.sort(key=lambda one: (*one[:3], one[3].line))
    first_s = found[0][0]
    return [
        Job(
            name=f"job-{row.line}",
            submit_s=submit_s - first_s,
            profile=profiles[n],
            n_devices=n,
            length=seconds,
            work_sigma=row.work_sigma,
        )
        for submit_s, n, seconds, row in found
    ]
