"""What a measurement is of: the one place that says which settings tell it from another, and find it again.

Our own measurements name their settings in what `to_dict` gives, wherever that was kept; tables of others name them in
their columns, as people write them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from traincast.records.record import Record, Scalar, Settings, canonical

STEP, EPOCH, PROCESSES, PROFILE, SWEEP = "step", "epoch", "processes", "profile", "sweep"
_SETTINGS = ("model", "batch_size", "optimizer", "precision", "device", "compiled", "n_workers")
_N_DEVICES = ("n_devices", "n_gpus", "n_processes")  # what people call the devices that share a batch


def kind_of(values: Mapping[str, Any]) -> str | None:
    """'step', 'epoch' or 'processes', of what a measurement's `to_dict` gives; None where it is none of these."""
    if not {"model", "batch_size"} <= values.keys() or "sweep" in values:
        return None
    if "bucket_bytes" in values:
        return PROCESSES
    if "epoch_s" in values:
        return EPOCH
    return STEP if "step_s" in values else None


def task_of(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """The settings of a measurement, from what its `to_dict` gives."""
    task = {name: values[name] for name in _SETTINGS if _is_scalar(values.get(name))}
    n_devices = _n_devices(values)
    return task if n_devices is None else {**task, "n_devices": n_devices}


def settings_of(record: Record) -> Settings:
    """What was run, under the names of a forecast: a measurement of ours knows best itself, whatever its task says."""
    if kind_of(record.values) is not None:
        return task_of(record.values)
    n_devices = _n_devices(record.task)
    return record.task if n_devices is None else {**record.task, "n_devices": n_devices}


def fits(record: Record, wanted: Settings) -> bool:
    """Whether the record contradicts none of these settings; what it does not say is taken to be right."""
    said = settings_of(record)
    return all(_agree(said.get(name), value) for name, value in wanted.items())


def measurements_in(content: Any) -> list[Mapping[str, Any]]:
    """What `traincast measure --json` prints holds one, a list of them has several, and so has a sweep."""
    if isinstance(content, list):
        return [found for one in content for found in measurements_in(one)]
    if not isinstance(content, Mapping):
        return []
    if SWEEP in content and isinstance(content.get("rows"), list):
        return measurements_in([row.get("measured") for row in content["rows"] if isinstance(row, Mapping)])
    return [content] if kind_of(content) is not None else []


def measurements_among(records: Iterable[Record]) -> Iterator[Record]:
    """Measured steps, epochs and profiles; those that rows of sweeps hold too."""
    for record in records:
        if record.kind in (STEP, EPOCH, PROCESSES, PROFILE):
            yield record
        elif record.kind == SWEEP:
            for values in measurements_in(record.values.get("measured")):
                yield replace(record, kind=kind_of(values) or STEP, task=task_of(values), values=values)


def fingerprint(content: Any) -> str:
    """The same for the same content: what was imported once is known again, and nothing else is taken for it."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()[:16]


def _n_devices(said: Mapping[str, Any]) -> int | None:
    kind = kind_of(said)
    if kind == EPOCH or (kind == STEP and STEP in said):  # ours; `n_processes` of an old one were one after the other
        return 1
    found = next((said[name] for name in _N_DEVICES if name in said), None)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _agree(said: Scalar, wanted: Scalar) -> bool:
    """Names as people write them: 'ResNet-50' is resnet50, and SGD is sgd."""
    if said is None:
        return True
    if isinstance(said, str) and isinstance(wanted, str):
        return _plain(said) == _plain(wanted)
    return said == wanted


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)
