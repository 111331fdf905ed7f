"""The GPUs of the table that hold a step, smallest memory first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from traincast.errors import InputError
from traincast.forecasting.device_memory import device_memory
from traincast.forecasting.question import Question
from traincast.hardware.device import Device


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Holder:
    """A GPU, and what the step would hold of it."""

    device: Device
    peak_memory_bytes: int

    @property
    def fits(self) -> bool:
        return self.peak_memory_bytes <= self.device.usable_memory_bytes

    def to_dict(self) -> dict[str, Any]:
        return {
            "device": self.device.name,
            "memory_bytes": self.device.memory_bytes,
            "usable_memory_bytes": self.device.usable_memory_bytes,
            "peak_memory_bytes": self.peak_memory_bytes,
            "fits": self.fits,
            "year": self.device.year,
        }


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SmallestGpu:
    """Every GPU with units for the precision, smallest memory first."""

    question: Question  # on any of them
    gpus: tuple[Holder, ...]
    without_units: tuple[str, ...]  # names of those that have no units for the precision

    @property
    def smallest(self) -> Holder | None:
        return next((one for one in self.gpus if one.fits), None)

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes

        rows = [(one.device.name, show_bytes(one.peak_memory_bytes), "yes" if one.fits else "no") for one in self.gpus]
        title = f"GPUs that hold {self.question.trace.name}, batch {self.question.batch_size:,}"
        return to_notebook(title, rows, header=("GPU", "memory", "fits"))

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        question = self.question
        return {
            "model": question.trace.name,
            "batch_size": question.batch_size,
            "seqlen": question.trace.tokens_per_sample,
            "precision": question.settings.precision,
            "optimizer": question.settings.optimizer,
            "smallest_gpu": None if self.smallest is None else self.smallest.device.name,
            "gpus": [one.to_dict() for one in self.gpus],
            "without_units": list(self.without_units),
        }


def find_smallest(question: Question, devices: Iterable[Device]) -> SmallestGpu:
    """Of one memory size the newest comes first."""
    found, lacking = [], []
    for device in sorted(devices, key=lambda one: (one.memory_bytes, -(one.year or 0), one.name)):
        if device.kind != "gpu":
            continue
        if not _has_units(device, question.settings.precision):
            lacking.append(device.name)
            continue
        asked = replace(question, device=device, cluster=None)
        found.append(Holder(device=device, peak_memory_bytes=device_memory(asked).total_bytes))
    return SmallestGpu(question=question, gpus=tuple(found), without_units=tuple(lacking))


def _has_units(device: Device, precision: str) -> bool:
    try:
        return not device.peak(precision).is_fallback
    except InputError:  # its rate is not in the table
        return False
