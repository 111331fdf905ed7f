"""Measured speeds for Optimus' model from a CSV file: servers, workers, and steps a second or seconds a step."""

from __future__ import annotations

from pathlib import Path

from traincast.errors import FileFormatError
from traincast.scaling.number_table import Row, read_rows
from traincast.scaling.optimus import SpeedPoint

_ALIASES = {
    "servers": ("n_servers", "ps", "p", "parameter_servers"),
    "workers": ("n_workers", "w"),
    "steps_per_s": ("speed", "steps_s", "steps_per_second"),
    "step_s": ("step_seconds", "step_time", "step_time_s", "seconds_per_step"),
}


def read_speeds(path: str | Path) -> tuple[SpeedPoint, ...]:
    """The points of a file; steps are those of Equation 4: of the whole job, or of all asynchronous workers."""
    points = tuple(_point(row) for row in read_rows(path, _ALIASES))
    if not points:
        raise FileFormatError(f"'{path}' has no measured speeds.")
    return points


def _point(row: Row) -> SpeedPoint:
    for key in ("servers", "workers"):
        row.one_of(key)
    speed = row.one_of("steps_per_s", "step_s")
    return SpeedPoint(
        n_servers=row.whole("servers"),
        n_workers=row.whole("workers"),
        steps_per_s=row.number(speed) if speed == "steps_per_s" else 1 / row.number(speed),
    )
