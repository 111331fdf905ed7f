"""Measured speeds for Optimus' model from a CSV file: servers, workers, and steps a second or seconds a step."""

from __future__ import annotations

from pathlib import Path

from traincast.errors import FileFormatError
from traincast.scaling.number_table import Cells, need_one_column, read_numbers, whole_number
from traincast.scaling.optimus import SpeedPoint

_ALIASES = {
    "servers": ("n_servers", "ps", "p", "parameter_servers"),
    "workers": ("n_workers", "w"),
    "steps_per_s": ("speed", "steps_s", "steps_per_second"),
    "step_s": ("step_seconds", "step_time", "step_time_s", "seconds_per_step"),
}


def read_speeds(path: str | Path) -> tuple[SpeedPoint, ...]:
    """The points of a file; steps are those of Equation 4: of the whole job, or of all asynchronous workers."""
    points = tuple(_point(where, cells) for where, cells in read_numbers(path, _ALIASES))
    if not points:
        raise FileFormatError(f"'{path}' holds no measured speeds.")
    return points


def _point(where: str, cells: Cells) -> SpeedPoint:
    for key in ("servers", "workers"):
        need_one_column(cells, [key], where)
    speed = need_one_column(cells, ("steps_per_s", "step_s"), where)
    return SpeedPoint(
        n_servers=whole_number(cells, "servers", where),
        n_workers=whole_number(cells, "workers", where),
        steps_per_s=cells[speed] if speed == "steps_per_s" else 1 / cells[speed],
    )
