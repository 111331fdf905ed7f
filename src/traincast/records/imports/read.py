"""Measurements of any file that we can read, told by its content: our store, a profiler trace, our JSON, a table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.records.environment import Environment
from traincast.records.identity import PROFILE, STEP, fingerprint, kind_of, measurements_in, task_of
from traincast.records.imports.chrome_file import events_of, is_trace_content, parse_json, read_text
from traincast.records.imports.kineto import profiled_run
from traincast.records.imports.measured_csv import records_of_csv, unknown_environment
from traincast.records.record import Record
from traincast.records.store import Store
from traincast.report.input_files import regular

_SQLITE = b"SQLite format 3\x00"


def read_measured(path: str | Path) -> list[Record]:
    """All records of a file; those of a table are as old as the file."""
    path = Path(path)
    try:
        with regular(path).open("rb") as file:
            is_store = file.read(len(_SQLITE)) == _SQLITE
        created_s = path.stat().st_mtime
    except FileNotFoundError:
        raise InputError(f"There is no file '{path}' with measurements.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    if is_store:
        with Store(path, create=False) as store:
            return store.records()
    text = read_text(path)
    if not text.strip():
        raise FileFormatError(f"'{path}' is empty.")
    if text.lstrip()[0] not in "{[":
        return records_of_csv(text, path, created_s=created_s)
    content = parse_json(text, path)
    if is_trace_content(content):
        return [_profile(content, text, path, created_s)]
    return _measurements(content, path, created_s)


def _profile(content: Any, text: str, path: Path, created_s: float) -> Record:
    """A trace does not say what was trained: its content is all that tells it from another."""
    run = profiled_run(events_of(content, path), source=str(path))
    about = content if isinstance(content, dict) else {}
    properties = about.get("deviceProperties")
    first = properties[0] if isinstance(properties, list) and properties else {}
    device = str(first.get("name", run.device_kind)) if isinstance(first, dict) else run.device_kind
    return Record(
        kind=PROFILE,
        task={"source": path.name, "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]},
        values=run.to_dict(),
        environment=unknown_environment(device, host=str(about.get("host_name", "unknown"))),
        created_s=created_s,
    )


def _measurements(content: Any, path: Path, created_s: float) -> list[Record]:
    """What `traincast measure --json` prints of steps, epochs, processes and sweeps."""
    found = measurements_in(content)
    if not found:
        raise FileFormatError(
            f"'{path}' is JSON, but neither a trace of torch.profiler (it has no 'traceEvents') nor steps, an epoch or "
            "a sweep as 'traincast measure --json' prints them (model, batch_size, step_s)."
        )
    return [_measurement(one, path, created_s) for one in found]


def _measurement(one: Mapping[str, Any], path: Path, created_s: float) -> Record:
    """The same settings again are another measurement: what came out is part of what tells it from others."""
    values = {name: value for name, value in one.items() if name != "environment"}
    return Record(
        kind=kind_of(one) or STEP,
        task={**task_of(one), "source": path.name, "sha256": fingerprint(one)},
        values={**values, "source": str(path)},
        environment=_environment(one.get("environment"), str(one.get("device", "unknown"))),
        created_s=created_s,
    )


def _environment(given: Any, device: str) -> Environment:
    if not isinstance(given, dict):
        return unknown_environment(device)
    try:
        return Environment.from_dict(given)
    except TypeError:  # of another version
        return unknown_environment(str(given.get("device", device)))
