"""Forecasts of one question: at its own place and batch size, or at many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traincast.errors import InputError
from traincast.forecasting.device_steps import DeviceSteps
from traincast.forecasting.device_times import device_times, micro_batches, steps_at
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.hardware.device import Device
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Sweep:
    """Steps on several devices at several batch sizes: arrays have one row a device, one column a batch size."""

    devices: tuple[Device, ...]
    batch_sizes: Ints
    by_device: tuple[DeviceSteps, ...]

    @property
    def step_s(self) -> Floats:
        return np.stack([steps.step_s for steps in self.by_device])

    @property
    def samples_per_s(self) -> Floats:
        return self.batch_sizes / self.step_s

    @property
    def log_sd(self) -> Floats:
        return np.stack([steps.log_sd for steps in self.by_device])

    @property
    def bound_by(self) -> list[list[str]]:
        return [steps.bound_by for steps in self.by_device]

    def forecasts(self) -> tuple[Forecast, ...]:
        """All of them, device by device."""
        return tuple(forecast for steps in self.by_device for forecast in steps.forecasts())


def forecast_step(question: Question) -> Forecast:
    """The one forecast that was asked for."""
    return _steps(question, np.array([question.batch_size])).forecasts()[0]


def forecast_many(questions: Sequence[Question], batch_sizes: Sequence[int]) -> Sweep:
    """Questions that differ in the device, each at all batch sizes: one pass over arrays for a device."""
    if not questions or not len(batch_sizes):
        raise InputError("A sweep needs at least one device and one batch size.")
    # Every batch size is checked against the accumulation steps here, once for all devices.
    checked = [replace(questions[0], batch_size=batch_size).batch_size for batch_size in batch_sizes]
    sizes = np.array(checked, dtype=np.int64)
    return Sweep(
        devices=tuple(question.device for question in questions),
        batch_sizes=sizes,
        by_device=tuple(_steps(replace(question, batch_size=checked[0]), sizes) for question in questions),
    )


def _steps(question: Question, batch_sizes: Ints) -> DeviceSteps:
    return steps_at(device_times(question, micro_batches(question, batch_sizes)), question, batch_sizes)
