"""A scaling experiment: what it will take, what it took, and what that says about scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.recipe_forecast import forecasts_to_dict
from traincast.api.recipes import folder_of
from traincast.api.runnables import require_torch
from traincast.errors import InputError, TraincastError
from traincast.hardware.host import THIS_MACHINE
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.recipes.usual import DATA, MODEL, SCALING_DEVICES, SCALING_EPOCHS, SCRATCH

if TYPE_CHECKING:
    from traincast.api.scaling_cells import ScalingForecast
    from traincast.recipes.scaling_experiment.analysis import SpeedupComparison
    from traincast.recipes.scaling_experiment.result import CellRun
    from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
    from traincast.trace.trace import Trace

_MEMORY_SHARE = 0.9  # of a device's, that a growing batch may ask for


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingExperiment:
    """What is going to be run."""

    settings: ScalingSettings
    n_samples: int
    cells: tuple[Cell, ...]
    forecast: ScalingForecast
    notes: tuple[str, ...]
    folder: Path  # where it is going to run
    link_bytes_per_s: float | None  # of what joins the devices; None: as measured

    @property
    def is_here(self) -> bool:
        """Whether the forecast is for what is going to run."""
        return self.forecast.on == THIS_MACHINE or self.settings.device != "cpu"

    def to_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings.to_dict(),
            "n_samples": self.n_samples,
            "forecast": self.forecast.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingResult:
    """What was run. `weak` keeps the batch of a device, `strong` that of all devices together."""

    experiment: ScalingExperiment
    runs: tuple[CellRun, ...]
    failures: tuple[tuple[Cell, str], ...]
    weak: SpeedupComparison
    strong: SpeedupComparison
    warnings: tuple[str, ...]

    def to_dict(self, asked: ScalingExperiment | None = None) -> dict[str, Any]:
        """What --json prints. `asked` is the same experiment with the forecast for another device."""
        here = self.experiment
        return {
            **here.to_dict(),
            **({} if asked is None else forecasts_to_dict(asked.forecast, here.forecast)),
            "runs": [run.to_dict() | {"epoch_s": run.epoch_s, "n_steps": run.n_steps} for run in self.runs],
            "failures": [{**asdict(cell), "error": error} for cell, error in self.failures],
            "weak": _compared(self.weak),
            "strong": _compared(self.strong),
            "warnings": list(self.warnings),
        }


@question
def plan_scaling(
    model: o.TrainedModel = MODEL,
    data: o.Data = DATA,
    *,
    n_devices: o.DeviceCounts = SCALING_DEVICES,
    batch_sizes: o.BatchesOfDevice = (32, ...),
    n_epochs: o.EpochsOfEach = SCALING_EPOCHS,
    n_samples: o.ImagesPerEpoch = None,
    learning_rate: o.LearningRate = SCRATCH.learning_rate,
    optimizer: o.TrainOptimizer = SCRATCH.optimizer,
    device: o.ScalingDevice = "cpu",
    link: o.JoiningLink = None,
    seed: o.Seed = 0,
    on: o.ForecastDevice = THIS_MACHINE,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.TrainingOptions],
) -> ScalingExperiment:
    """The runs of a scaling experiment and their forecast. Batch sizes that end in `...` go on fourfold.

    They end where memory does (as forecast), or where the data no longer fill one step of all devices. `on` is the
    device to forecast for ("T4"), if not this one; a price is that of a device.
    """
    require_torch("Training", extra="recipes")
    from traincast.api.scaling_cells import captured, forecast_cells
    from traincast.hardware.link_table import find_link_inside
    from traincast.measurement.processes.share import threads_of
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.scaling_experiment.settings import ScalingSettings
    from traincast.recipes.scaling_experiment.share import training_images
    from traincast.records.environment import n_usable_cores

    link_bytes_per_s = None if link is None else find_link_inside(link).bytes_per_s
    settings = ScalingSettings(
        model=model,
        data=str(data),
        batch_sizes=tuple(size for size in batch_sizes if isinstance(size, int)),
        n_devices=tuple(n_devices),
        n_threads=threads_of(n_usable_cores(), max(n_devices, default=1)),
        n_samples=n_samples,
        image_side=shared["image_side"],
        optimizer=optimizer,
        learning_rate=learning_rate,
        precision=shared["precision"],
        device=device,
        seed=seed,
        n_epochs=n_epochs,
    )
    if on == THIS_MACHINE:
        _check_gpus(settings)
    images = load_dataset(
        settings.data, image_side=settings.image_side, download=shared["download"], on_progress=on_download
    )
    n_images = training_images(images, settings).n_samples
    trace = captured(settings, images)
    notes: list[str] = []
    if ... in batch_sizes:
        settings, notes = _grown(settings, trace, n_images, on)
    cells = settings.cells(n_images)
    if not any(cell.n_devices == 1 for cell in cells):
        raise InputError(f"An epoch of {n_images:,} samples has no full batch of {settings.batch_sizes[0]:,}.")
    forecast = forecast_cells(
        trace, settings, images, cells, n_samples=n_images, on=on, price_usd_per_hour=shared["price_usd_per_hour"]
    )
    notes += _left_out(settings, n_images)
    return ScalingExperiment(
        settings=settings,
        n_samples=n_images,
        cells=cells,
        forecast=forecast,
        notes=tuple(notes),
        folder=folder_of(shared["out"], "scaling", model, data),
        link_bytes_per_s=link_bytes_per_s,
    )


def _grown(settings: ScalingSettings, trace: Trace, n_images: int, on: str) -> tuple[ScalingSettings, list[str]]:
    """Batch sizes that go on until memory or the data end, and which of them it was if it was memory."""
    from traincast.api.scaling_cells import device_memory_bytes, peak_bytes
    from traincast.recipes.scaling_experiment.settings import GROWTH

    sizes, notes = list(settings.batch_sizes), []
    limit_bytes = device_memory_bytes(settings, on)
    while GROWTH * sizes[-1] * max(settings.n_devices) <= n_images:
        if peak_bytes(trace, GROWTH * sizes[-1], settings, on) > _MEMORY_SHARE * limit_bytes:
            notes.append(f"Batches end at {sizes[-1]:,} a device: memory would not do for {GROWTH * sizes[-1]:,}.")
            break
        sizes.append(GROWTH * sizes[-1])
    return replace(settings, batch_sizes=tuple(sizes)), notes


def _left_out(settings: ScalingSettings, n_images: int) -> list[str]:
    """What was asked for and cannot be run."""
    notes = [
        f"Left out: {cell.n_devices} devices with {cell.batch_size:,} samples each, because an epoch of "
        f"{n_images:,} has no full step of that size."
        for cell in settings.left_out(n_images)
    ]
    return notes + [
        f"Left out of strong scaling: a batch of {batch:,} cannot be divided among {n_devices} devices."
        for n_devices, batch in settings.undivided()
    ]


@question
def run_scaling(
    experiment: ScalingExperiment,
    *,
    retry_failed: o.RetryFailed = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> ScalingResult:
    """Run what is not in its folder yet, under torchrun, and compare. The folder then also has `measured.csv`.

    Runs whose memory ended are results too, and tried again only with `retry_failed`.
    """
    from traincast.launch.scaling_run import run_cells
    from traincast.measurement.remarks import on_load
    from traincast.recipes.kept_settings import keep_settings, release_settings
    from traincast.recipes.scaling_experiment.analysis import compare, measured_csv
    from traincast.recipes.scaling_experiment.result import CellRun, forget_failure, read_run
    from traincast.recipes.scaling_experiment.settings import FILE
    from traincast.records.environment import read_environment
    from traincast.report.files import write_file

    settings, folder = experiment.settings, experiment.folder
    _check_gpus(settings)
    keep_settings(folder / FILE, settings.to_dict())
    for cell in experiment.cells if retry_failed else ():
        forget_failure(folder, cell)
    warnings = on_load(read_environment())  # before the run, whose own load it would show otherwise
    try:
        run_cells(settings, experiment.cells, folder, on_progress=on_progress)
    except TraincastError:
        release_settings(folder / FILE)
        raise
    found = [(cell, read_run(folder, cell)) for cell in experiment.cells]
    runs = tuple(run for _, run in found if isinstance(run, CellRun))
    write_file(folder / "measured.csv", measured_csv(runs))
    return ScalingResult(
        experiment=experiment,
        runs=runs,
        failures=tuple((cell, run) for cell, run in found if isinstance(run, str)),
        weak=compare(settings, runs, "weak", link_bytes_per_s=experiment.link_bytes_per_s),
        strong=compare(settings, runs, "strong", link_bytes_per_s=experiment.link_bytes_per_s),
        warnings=warnings,
    )


def _check_gpus(settings: ScalingSettings) -> None:
    from traincast.records.environment import n_gpus

    if settings.device == "cuda" and n_gpus() < max(settings.n_devices):
        raise InputError(f"torch sees {n_gpus()} GPUs here, but {max(settings.n_devices)} are requested.")


def _compared(comparison: SpeedupComparison) -> dict[str, Any]:
    rows = [
        {
            "batch_size": each.batch_size,
            **asdict(each.run.cell),
            "n_steps": each.run.n_steps,
            "epoch_s": each.run.epoch_s,
            "speedup": each.point.speedup,
            "efficiency_fraction": each.point.efficiency_fraction,
            "serial_fraction": each.serial_fraction,
            "input_s": each.run.input_s,
            "compute_s": each.run.compute_s,
            "communication_s": each.run.communication_s,
            "assumed_compute_s": each.point.compute_s,
            "assumed_communication_s": each.point.communication_s,
            "bytes_sent": each.run.bytes_sent,
            "assumed_bytes_per_s": each.assumed_bytes_per_s,
            "exposed_bytes_per_s": each.exposed_bytes_per_s,
            "reduced_bytes_per_s": each.reduced_bytes_per_s,
            "link_bytes_per_s": each.link_bytes_per_s,
        }
        for each in comparison.rows
    ]
    return {"rows": rows, "warnings": list(comparison.warnings)}
