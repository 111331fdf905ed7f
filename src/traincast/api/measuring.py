"""Real steps on this machine, and what traincast would have said about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.runnables import runnable_from, runnable_of
from traincast.errors import CaptureError, InputError, UnknownDeviceError

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement

__all__ = ["forecast_of", "measure", "measure_named", "measure_synthetic_epoch", "runnable_of"]


def measure(
    module: Any,
    example: Any = None,
    *,
    batch_size: int,
    optimizer: str = "sgd",
    n_steps: int | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    precision: str = "fp32",
    device: str = "cpu",
    compiled: bool = False,
    keeps_memory: bool = True,
) -> Measurement:
    """Real training steps of a torch module on this machine: median, least and p10 to p90 of the step and its phases.

    `module` and `example` are those of `capture`, and the module stays as it is; or `module` is the name of a model
    (see `load_model`), and there is no example. Without `n_steps`, as many as two seconds have room for, 5 to 100,
    after a warm-up. Ctrl-C ends it with what was measured until then. On a CPU this process keeps freed memory from
    then on, unless `keeps_memory` is False: see docs/calibrate.md.
    """
    is_named = isinstance(module, (str, Path))
    if is_named and (example is not None or loss is not None):
        raise InputError(f"'{module}' brings its own inputs and loss: leave out example and loss.")
    if not is_named and example is None:
        raise InputError(
            "measure needs an example of the module's inputs: tensors, or a callable batch_size -> inputs."
        )
    runnable = runnable_of(module) if is_named else runnable_from(module, example, loss)
    from traincast.measurement.measure import measure_step

    return measure_step(
        runnable,
        batch_size=batch_size,
        optimizer=optimizer,
        precision=precision,
        device=device,
        n_steps=n_steps,
        compiled=compiled,
        keeps_memory=keeps_memory,
    )


def measure_named(model: str | Path, options: Mapping[str, Any], **settings: Any) -> Measurement:
    """`measure` of a model by name, with its options; `settings` are those of `measure_step`."""
    runnable = runnable_of(model, **options)
    from traincast.measurement.measure import measure_step

    return measure_step(runnable, **settings)


def measure_synthetic_epoch(
    model: str | Path,
    *,
    batch_size: int,
    n_samples: int,
    n_workers: int = 0,
    sample_cost_s: float = 0.0,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> EpochMeasurement:
    """An epoch of a named model over a torch DataLoader whose samples take `sample_cost_s` of CPU time each."""
    runnable = runnable_of(model, **options)
    from torch.utils.data import DataLoader

    from traincast.measurement.epoch import measure_epoch
    from traincast.measurement.measure import check_batch_size
    from traincast.measurement.synthetic_data import SyntheticDataset
    from traincast.measurement.training import check_device

    check_batch_size(batch_size)
    check_device(device)
    if n_workers < 0:
        raise InputError(f"{n_workers} loader workers cannot be: give 0 to load in the training process, or more.")
    data = SyntheticDataset(runnable.make_inputs, n_samples, sample_cost_s)
    loader = DataLoader(data, batch_size=batch_size, num_workers=n_workers, pin_memory=device.startswith("cuda"))
    return measure_epoch(
        runnable, loader, optimizer=optimizer, precision=precision, device=device, on_progress=on_progress
    )


def forecast_of(measurement: Measurement, model: str | Path, **options: Any) -> tuple[Forecast | None, str]:
    """What traincast says about the step that was measured; where it cannot say anything, None and why."""
    from traincast.api.forecasts import forecast
    from traincast.api.models import load_model

    is_cpu = measurement.environment.device_kind == "cpu"
    place = "this-machine" if is_cpu else measurement.environment.device  # the driver's name of a GPU is one of ours
    try:
        answer = forecast(
            load_model(model, **options),
            on=place,
            batch_size=measurement.batch_size,
            precision=measurement.precision,
            optimizer=measurement.optimizer,
            compiled=measurement.compiled,
            host="this-machine" if is_cpu else None,
        )
    except (CaptureError, UnknownDeviceError, InputError) as error:
        return None, f"No forecast beside it: {error}"
    return answer, ""
