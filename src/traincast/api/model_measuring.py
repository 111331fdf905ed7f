"""A model by name, run for real in one process: its step or an epoch, and what traincast would have said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.models import model_options
from traincast.api.runnables import runnable_of
from traincast.errors import MeasurementError
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.options.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement
    from traincast.records.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMeasurement:
    """What was measured, beside its forecast, or why there is none."""

    measured: Measurement | EpochMeasurement
    forecast: Forecast | None
    no_forecast: str

    @property
    def kind(self) -> str:
        """Of its record in a store."""
        from traincast.measurement.epoch import EpochMeasurement
        from traincast.records.identity import EPOCH, STEP

        return EPOCH if isinstance(self.measured, EpochMeasurement) else STEP

    @property
    def environment(self) -> Environment:
        return self.measured.environment

    @property
    def was_stopped(self) -> bool:
        """By Ctrl-C."""
        return self.measured.is_partial

    def values(self) -> dict[str, Any]:
        """What a store keeps."""
        return self.measured.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {**self.values(), "forecast": None if self.forecast is None else self.forecast.to_dict()}


@question
def measure_model(
    model: o.ModelToRun,
    batch_size: o.BatchToRun,
    *,
    n_steps: o.TimedSteps = None,
    compiled: o.RunsCompiled = False,
    default_malloc: o.DefaultMalloc = False,
    n_repeats: o.NRepeats = 1,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Unpack[o.NamedRunOptions],
) -> ModelMeasurement:
    """Real steps of a model: as `measure`, by name, beside their forecast.

    With `n_repeats` in so many fresh processes, one after the other, joined to one measurement.
    """
    from traincast.measurement.device_names import check_device_name

    check_device_name(options["device"])
    asked = {"batch_size": batch_size, "n_steps": n_steps, "compiled": compiled}
    try:
        if n_repeats == 1:
            from traincast.measurement.measure import measure_step

            runnable = runnable_of(model, **model_options(options))
            how = {**asked, **how_to_run(options), "keeps_memory": not default_malloc}
            measured = measure_step(runnable, on_progress=on_progress, **how)
        else:
            from traincast.measurement.fresh_processes import measure_repeatedly

            line = {"model": str(model), **asked, "default_malloc": default_malloc, **options}
            measured = measure_repeatedly(list(words_of(measure_model, line)), n_repeats, on_progress=on_progress)
    except MeasurementError as error:
        raise _with_partial(error) from error
    return _beside_forecast(measured, model, options)


@question
def measure_model_epoch(
    model: o.ModelToRun,
    batch_size: o.BatchToRun,
    *,
    n_samples: o.EpochSamples,
    n_workers: o.LoaderWorkers = 0,
    data: o.DataFunction = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Unpack[o.NamedRunOptions],
) -> ModelMeasurement:
    """An epoch of a model over a torch DataLoader with so many samples, beside the forecast of its step.

    They are drawn from the data set that `data`, a "file.py:function", gives; without it they are made up.
    """
    runnable = runnable_of(model, **model_options(options))
    from traincast.measurement.epoch import measure_epoch
    from traincast.measurement.training import check_device

    check_device(options["device"])
    loader = _loader(runnable, batch_size, n_samples, n_workers, data, options["device"])
    n_batches = math.ceil(n_samples / batch_size)
    try:
        measured = measure_epoch(runnable, loader, n_batches=n_batches, on_progress=on_progress, **how_to_run(options))
    except MeasurementError as error:
        raise _with_partial(error) from error
    return _beside_forecast(measured, model, options)


def _loader(
    runnable: Any, batch_size: int, n_samples: int, n_workers: int, data: str | None, device: str
) -> Iterable[Any]:
    from torch.utils.data import DataLoader

    from traincast.frontend.python_file import call_in_file
    from traincast.measurement.failures import users_code
    from traincast.measurement.sweeps.loading import BatchLoader, check_dataset
    from traincast.measurement.synthetic_data import SyntheticDataset
    from traincast.measurement.training import is_cuda

    if data is None:
        made_up = SyntheticDataset(runnable.make_inputs, n_samples)
        return DataLoader(made_up, batch_size=batch_size, num_workers=n_workers, pin_memory=is_cuda(device))
    with users_code("An example batch of 1 sample"):
        like = runnable.make_inputs(1)
    dataset = check_dataset(call_in_file(data), data)
    n_batches = math.ceil(n_samples / batch_size)
    return BatchLoader(dataset, like, batch_size=batch_size, n_batches=n_batches, num_workers=n_workers)


def how_to_run(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a step, whatever the model."""
    return {name: options[name] for name in o.HowToRun.__annotations__}


def _beside_forecast(
    measured: Measurement | EpochMeasurement, model: Any, options: Mapping[str, Any]
) -> ModelMeasurement:
    from traincast.api.measuring import forecast_of

    forecast, why_not = forecast_of(measured, model, **model_options(options))
    return ModelMeasurement(measured=measured, forecast=forecast, no_forecast=why_not)


def _with_partial(error: MeasurementError) -> MeasurementError:
    """What was measured before it failed, in the same line."""
    from traincast.units import show_duration

    summary = getattr(error.partial, "step", None) or getattr(error.partial, "batch", None)
    if summary is None:
        return error
    took = show_duration(summary.median)
    before = f"The step before it took {took}." if summary.n == 1 else f"The {summary.n} before it took {took} each."
    return type(error)(f"{error} {before}", partial=error.partial)
