"""The runs of a scaling experiment, before they are run: time of an epoch, its parts, memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.hardware.cluster import Cluster
    from traincast.hardware.device import Device
    from traincast.recipes.data.images import ImageDataset
    from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
    from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class CellForecast:
    """One run, before it: seconds are of an epoch."""

    cell: Cell
    n_steps: int
    compute_s: float
    communication_s: float
    input_s: float | None  # None: not on this machine, so reading was not timed
    low_s: float  # p10 and p90 of the epoch
    high_s: float
    peak_memory_bytes: int  # of a device
    fits: bool
    price_usd_per_hour: float | None = None  # of all its devices

    @property
    def epoch_s(self) -> float:
        return self.compute_s + self.communication_s + (self.input_s or 0.0)

    @property
    def epoch_usd(self) -> float | None:
        return None if self.price_usd_per_hour is None else self.price_usd_per_hour * self.epoch_s / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingForecast:
    """Runs that could be forecast, and sentences about what was assumed and what could not be."""

    on: str
    n_epochs: int
    cells: tuple[CellForecast, ...]
    warnings: tuple[str, ...]
    reasons: Mapping[int, str] = field(default_factory=dict)  # why runs on so many devices have no forecast

    @property
    def total_s(self) -> float | None:
        """All epochs of all runs that are forecast, one after the other; None where none is."""
        return self.n_epochs * sum(each.epoch_s for each in self.cells) if self.cells else None

    @property
    def cost_usd(self) -> float | None:
        """Of the same; None where a price is not known."""
        costs = [each.epoch_usd for each in self.cells]
        return self.n_epochs * sum(cost for cost in costs if cost is not None) if costs and None not in costs else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """What the largest run asks of a device."""
        return max((each.peak_memory_bytes for each in self.cells), default=None)

    def of(self, cell: Cell) -> CellForecast | None:
        return next((each for each in self.cells if each.cell == cell), None)

    def to_dict(self) -> dict[str, Any]:
        cells = [{**asdict(each), "epoch_s": each.epoch_s, "epoch_usd": each.epoch_usd} for each in self.cells]
        return {
            "on": self.on,
            "cells": cells,
            "total_s": self.total_s,
            "cost_usd": self.cost_usd,
            "peak_memory_bytes": self.peak_memory_bytes,
            "warnings": list(self.warnings),
            "reasons": {str(n_devices): reason for n_devices, reason in self.reasons.items()},
        }


def captured(settings: ScalingSettings, data: ImageDataset) -> Trace:
    """One step of the model on images of this size."""
    from traincast.api.models import capture
    from traincast.frontend.models.training_step import label_loss
    from traincast.recipes.engine.stages import example_of
    from traincast.recipes.models import meta_model

    return capture(
        meta_model(settings.model, data.train.n_classes),
        example_of(data.train),
        loss=label_loss,
        optimizer=settings.optimizer,
        precision=settings.precision,
    )


def forecast_cells(
    trace: Trace,
    settings: ScalingSettings,
    data: ImageDataset,
    cells: Sequence[Cell],
    *,
    n_samples: int,
    on: str,
    price_usd_per_hour: float | None = None,
) -> ScalingForecast:
    """Every cell for whose devices figures are known; a price is that of a device."""
    found: list[CellForecast] = []
    warnings: dict[str, None] = {}
    reasons: dict[int, str] = {}
    read_s = _read_s(settings, data) if on == THIS_MACHINE else None
    if read_s is None:
        warnings["Reading images is not included in the forecast: it was not timed on that device."] = None
    for n_devices in dict.fromkeys(cell.n_devices for cell in cells):
        own = [cell for cell in cells if cell.n_devices == n_devices]
        place = _place(settings, on, n_devices)
        if isinstance(place, _Unknown):
            warnings[f"No forecast for {n_devices} device{'s' * (n_devices > 1)}: {place.reason}"] = None
            reasons[n_devices] = place.reason
            continue
        steps = _steps(trace, place, own, n_samples, price_usd_per_hour)
        found += [_epoch(cell, n_samples, steps, read_s) for cell in own]
        warnings |= dict.fromkeys(text for step in steps.values() for text in step.warnings if "evenly" not in text)
    return ScalingForecast(
        on=on, n_epochs=settings.n_epochs, cells=tuple(found), warnings=tuple(warnings), reasons=reasons
    )


@dataclass(frozen=True, slots=True)
class _Unknown:
    """Why so many devices cannot be forecast."""

    reason: str


def last_batch_size(cell: Cell, n_samples: int) -> int:
    """Of all devices in the last step of an epoch: what is left over, the same for each; 0 where nothing is."""
    rest = n_samples % cell.global_batch_size
    return cell.n_devices * -(-rest // cell.n_devices)


def device_memory_bytes(settings: ScalingSettings, on: str) -> float:
    """What one device has: a GPU its own, a process on a CPU its share of the machine's."""
    if on == THIS_MACHINE and settings.device == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / max(settings.n_devices)
    return _device(settings, on).usable_memory_bytes


def peak_bytes(trace: Trace, batch_size: int, settings: ScalingSettings, on: str) -> int:
    """Of one device in a step of so many samples."""
    from traincast.hardware.catalog import find_device
    from traincast.memory.overhead import reported_bytes
    from traincast.trace.lowering.lower import lower

    is_cpu = on == THIS_MACHINE and settings.device == "cpu"
    device = find_device("generic-cpu") if is_cpu else _device(settings, on)
    graph = lower(trace, target="cpu" if is_cpu else "cuda", settings=trace.defaults)
    return reported_bytes(graph, batch_size, device=device)


def _place(settings: ScalingSettings, on: str, n_devices: int) -> str | Cluster | _Unknown:
    """So many devices, in words or as a cluster.

    This machine may not be calibrated for so many processes, and its GPUs may be none that we know.

    A process on this machine has `n_threads`, however many there are. Calibration with P processes has priced one of
    P that share the machine, so what stands for the device is the profile whose processes have as many threads; where
    more processes run than cores, the profile of as many processes.
    """
    from traincast.hardware.cluster_text import find_cluster
    from traincast.records.environment import n_usable_cores

    if on != THIS_MACHINE:
        return f"{n_devices}x{_device(settings, on).name}"
    n_beside = max(n_usable_cores() // settings.n_threads, 1)
    if settings.device == "cpu" and n_beside == n_devices == 1:
        return THIS_MACHINE
    try:
        if settings.device != "cpu":
            return f"{n_devices}x{_device(settings, on).name}"
        cluster = find_cluster(f"{max(n_beside, n_devices)}x{THIS_MACHINE}").take(n_devices)
    except InputError as error:
        return _Unknown(str(error))
    if n_devices > 1:
        return cluster
    return replace(cluster, device=replace(cluster.device, waiting_fraction=0.0))  # there is nobody to wait for


def _device(settings: ScalingSettings, on: str) -> Device:
    from traincast.hardware.catalog import find_device

    if on != THIS_MACHINE:
        return find_device(on)
    from traincast.records.environment import gpu_name

    return find_device(gpu_name())


def _steps(
    trace: Trace, place: str | Cluster, cells: Sequence[Cell], n_samples: int, price_usd_per_hour: float | None
) -> dict[int, Forecast]:
    """By global batch size: full steps and the last ones."""
    from traincast.api.forecasts import forecast_many

    sizes = {cell.global_batch_size for cell in cells} | {last_batch_size(cell, n_samples) for cell in cells}
    ordered = sorted(size for size in sizes if size)
    found = forecast_many(trace, [place], ordered, price_usd_per_hour=price_usd_per_hour)
    return dict(zip(ordered, found.forecasts(), strict=True))


def _epoch(cell: Cell, n_samples: int, steps: dict[int, Forecast], read_s: float | None) -> CellForecast:
    full, last = steps[cell.global_batch_size], last_batch_size(cell, n_samples)
    counted = [(n_samples // cell.global_batch_size, full)] + ([(1, steps[last])] if last else [])
    communication_s = sum(n * step.exposed_communication_s for n, step in counted)
    busy_s = sum(n * step.step_s for n, step in counted)
    low_s, high_s = (limit_s / full.step_s for limit_s in full.interval("step_s"))
    input_s = None if read_s is None else read_s * -(-n_samples // cell.n_devices)
    return CellForecast(
        cell=cell,
        n_steps=cell.n_steps(n_samples),
        compute_s=busy_s - communication_s,
        communication_s=communication_s,
        input_s=input_s,
        low_s=busy_s * low_s + (input_s or 0.0),
        high_s=busy_s * high_s + (input_s or 0.0),
        peak_memory_bytes=full.peak_memory_bytes,
        fits=full.fits,
        price_usd_per_hour=full.question.run_price_usd_per_hour,
    )


def _read_s(settings: ScalingSettings, data: ImageDataset) -> float:
    """Seconds a sample: a few batches are really read and augmented, with the threads of a device."""
    from traincast.recipes.engine.input_time import input_s_per_sample
    from traincast.recipes.scaling_experiment.settings import Cell
    from traincast.recipes.scaling_experiment.share import batches_of
    from traincast.records.environment import threads

    with threads(settings.n_threads):
        return input_s_per_sample(batches_of(data, settings, Cell(1, settings.batch_sizes[0]), rank=0))
