"""How far equal measurements lie apart: again on one machine, and between machines with the same device.

Two leases of one GPU type differed by 11 to 31 % in the practicum: a floor under the error of whatever knows the
device's name only. Components of variance of log times: within machines pooled, between them what their means vary
beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.records.record import Record, canonical

_MACHINE = ("host", "machine", "node", "lease", "instance")  # columns of others that name it
_NOT_ASKED = {"source", "sha256", "repeat", "asked_s", "campaign", "epoch", "run", *_MACHINE}
_TIMES = ("step_s", "median_s", "epoch_s")
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Equal measurements on one type of device."""

    what: str
    device: str
    median_s: float
    by_machine_s: Mapping[str, float]  # the median of each
    n: int
    within_log_sd: float | None  # None: no machine measured twice
    between_log_sd: float | None  # None: one machine

    @property
    def n_machines(self) -> int:
        return len(self.by_machine_s)

    @property
    def slowest_over_fastest(self) -> float | None:
        """Of the machines' medians."""
        times = self.by_machine_s.values()
        return max(times) / min(times) if len(times) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "device": self.device,
            "n": self.n,
            "n_machines": self.n_machines,
            "median_s": self.median_s,
            "by_machine_s": dict(self.by_machine_s),
            "within_log_sd": self.within_log_sd,
            "between_log_sd": self.between_log_sd,
            "slowest_over_fastest": self.slowest_over_fastest,
        }


def spreads_of(records: Iterable[Record]) -> tuple[Spread, ...]:
    """One for each question that was measured more than once, in the order of the store."""
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    labels: dict[tuple[str, str, str], str] = {}
    for record in records:
        seconds = next((record.values[name] for name in _TIMES if record.values.get(name)), None)
        if record.error is not None or not isinstance(seconds, int | float) or seconds <= 0:
            continue
        task = {name: value for name, value in record.task.items() if name not in _NOT_ASKED}
        key = record.kind, record.environment.device, canonical(task)
        groups.setdefault(key, {}).setdefault(_machine(record), []).append(float(seconds))
        labels[key] = _label(record.kind, task)
    return tuple(
        _spread(labels[key], key[1], times) for key, times in groups.items() if sum(map(len, times.values())) > 1
    )


def _machine(record: Record) -> str:
    if record.environment.host != _UNKNOWN:
        return record.environment.host
    return next((str(record.task[name]) for name in _MACHINE if name in record.task), _UNKNOWN)


def _label(kind: str, task: Mapping[str, Any]) -> str:
    first = [str(task[name]) for name in ("model", "layer", "op") if name in task]
    batch = [f"batch {task['batch_size']:,}"] if isinstance(task.get("batch_size"), int) else []
    rest = [str(task[name]) for name in ("optimizer", "precision") if name in task]
    return f"{kind}: {', '.join([*first, *batch, *rest])}"


def _spread(what: str, device: str, times: Mapping[str, list[float]]) -> Spread:
    logs = [np.log(seconds) for seconds in times.values()]
    sizes = np.array([len(one) for one in logs])
    n, n_machines = int(sizes.sum()), len(logs)
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in logs)
    within = squares / (n - n_machines) if n > n_machines else None
    between = None
    if n_machines > 1:
        every = np.concatenate(logs)
        of_means = sum(len(one) * (one.mean() - every.mean()) ** 2 for one in logs) / (n_machines - 1)
        size = (n - float((sizes**2).sum()) / n) / (n_machines - 1)
        between = max(float(of_means) - (within or 0.0), 0.0) / size
    return Spread(
        what=what,
        device=device,
        median_s=float(np.median(np.concatenate([np.array(seconds) for seconds in times.values()]))),
        by_machine_s={name: float(np.median(seconds)) for name, seconds in times.items()},
        n=n,
        within_log_sd=None if within is None else math.sqrt(within),
        between_log_sd=None if between is None else math.sqrt(between),
    )
