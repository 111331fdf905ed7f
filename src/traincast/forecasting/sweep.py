"""Forecasts of one question: at its own device and batch size, or at many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.forecasting.spread import step_log_sd
from traincast.hardware.device import Device
from traincast.kernels.timeline import StepTimeline, step_timeline
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class DeviceSteps:
    """Steps on one device, with one entry a batch size in every array."""

    question: Question  # at the first batch size
    batch_sizes: Ints
    timeline: StepTimeline
    input_wait_s: Floats
    log_sd: Floats
    is_covered: NDArray[np.bool_]
    method_warnings: tuple[str, ...]

    @property
    def step_s(self) -> Floats:
        return self.timeline.step_s + self.input_wait_s

    @property
    def bound_by(self) -> list[str]:
        return np.where(self.input_wait_s > 0, "input", self.timeline.bound_by).tolist()

    def forecasts(self) -> list[Forecast]:
        """One a batch size."""
        timeline, bound_by = self.timeline, self.bound_by
        return [
            Forecast(
                question=replace(self.question, batch_size=batch_size) if place else self.question,
                forward_s=float(timeline.forward_s[place]),
                loss_s=float(timeline.loss_s[place]),
                backward_s=float(timeline.backward_s[place]),
                optimizer_s=float(timeline.optimizer_s[place]),
                input_wait_s=float(self.input_wait_s[place]),
                bound_by=bound_by[place],
                host_s=float(timeline.host_s[place]),
                device_s=float(timeline.device_s[place]),
                log_sd=float(self.log_sd[place]),
                is_covered=self.is_covered,
                method_warnings=self.method_warnings,
            )
            for place, batch_size in enumerate(self.batch_sizes.tolist())
        ]


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
    graph, device = question.timed_graph, question.device
    micro_batches = batch_sizes // question.accumulation_steps
    times = question.method.op_times(graph, device, micro_batches, precision=question.settings.precision)
    timeline = step_timeline(
        graph,
        times,
        question.timed_host,
        n_micro_steps=question.accumulation_steps,
        is_synchronous=device.kind == "cpu",
    )
    rate = question.input_samples_per_s
    wait_s = np.zeros(len(batch_sizes)) if rate is None else np.maximum(batch_sizes / rate - timeline.step_s, 0.0)
    return DeviceSteps(
        question=question,
        batch_sizes=batch_sizes,
        timeline=timeline,
        input_wait_s=wait_s,
        log_sd=step_log_sd(timeline),
        is_covered=times.is_covered,
        method_warnings=times.warnings,
    )
