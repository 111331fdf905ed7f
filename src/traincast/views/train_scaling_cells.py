"""How the runs of `traincast train scaling` are named, in its forecast and in its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.table import Column
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings

DEVICES = Column(key="n_devices", header="devices", show="integer")
OF_EACH = Column(key="batch_size_per_device", header="batch a device", show="integer")
OF_ALL = Column(key="global_batch_size", header="batch of all", show="integer")


def of_cell(cell: Cell) -> str:
    """A run, by what tells it from others."""
    return f"{show_things(cell.n_devices, 'device')} with {show_things(cell.batch_size, 'sample')} each"


def told(settings: ScalingSettings) -> str:
    """What all runs have in common."""
    threads = show_things(settings.n_threads, "thread")
    device = "a GPU" if settings.device == "cuda" else f"a process with {threads}"
    return (
        f"{settings.data}, {settings.precision}, {settings.optimizer}, {show_things(settings.n_epochs, 'epoch')} each, "
        f"the first not counted; a device is {device}"
    )
