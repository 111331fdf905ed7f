"""Real steps on this machine, and what traincast would have said about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.runnables import runnable_from, runnable_of
from traincast.errors import InputError, TraincastError
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.this_machine import THIS_GPU, read_profile
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.environment import Environment
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement
    from traincast.measurement.processes.result import ProcessesMeasurement


@question
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


@question
def measure_epoch(
    module: Any,
    loader: Iterable[Any],
    *,
    inputs: Callable[[Any], Any] | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: str = "sgd",
    n_batches: int | None = None,
    precision: str = "fp32",
    device: str = "cpu",
) -> EpochMeasurement:
    """A real epoch of a torch module over your own loader, or its first `n_batches`: where does the time of a batch go?

    `loader` is a torch DataLoader, or anything that gives batches. `inputs` picks from a batch what the module takes
    (default: all of it); `loss` maps (output, batch) to a scalar, and its default is that of `capture`. The module
    stays as it is. Ctrl-C ends it with what was measured until then.
    """
    runnable = runnable_from(module, lambda batch_size: (), loss)
    from traincast.measurement.epoch import measure_epoch as run

    if inputs is not None:
        take, forward = inputs, runnable.forward
        runnable = replace(runnable, forward=lambda called, batch: forward(called, take(batch)))
    return run(runnable, loader, optimizer=optimizer, precision=precision, device=device, n_batches=n_batches)


def measure_named_epoch(
    model: str | Path,
    *,
    batch_size: int,
    n_samples: int,
    n_workers: int = 0,
    data: str | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> EpochMeasurement:
    """An epoch of a named model over a torch DataLoader with so many samples.

    They are drawn from the data set that `data`, a "file.py:function", gives; without it they are made up.
    """
    runnable = runnable_of(model, **options)
    from torch.utils.data import DataLoader

    from traincast.frontend.python_file import call_in_file
    from traincast.measurement.epoch import measure_epoch as run
    from traincast.measurement.failures import users_code
    from traincast.measurement.measure import check_batch_size, check_count_of
    from traincast.measurement.sweeps.loading import BatchLoader, check_dataset
    from traincast.measurement.synthetic_data import SyntheticDataset
    from traincast.measurement.training import check_device, is_cuda

    check_batch_size(batch_size)
    check_device(device)
    check_count_of("samples", n_samples)
    if n_workers < 0:
        raise InputError(f"{n_workers} loader workers cannot be: give 0 to load in the training process, or more.")
    loader: Iterable[Any]
    n_batches = math.ceil(n_samples / batch_size)
    if data is None:
        made_up = SyntheticDataset(runnable.make_inputs, n_samples)
        loader = DataLoader(made_up, batch_size=batch_size, num_workers=n_workers, pin_memory=is_cuda(device))
    else:
        with users_code("An example batch of 1 sample"):
            like = runnable.make_inputs(1)
        dataset = check_dataset(call_in_file(data), data)
        loader = BatchLoader(dataset, like, batch_size=batch_size, n_batches=n_batches, num_workers=n_workers)
    return run(
        runnable,
        loader,
        optimizer=optimizer,
        precision=precision,
        device=device,
        n_batches=n_batches,
        on_progress=on_progress,
    )


def forecast_of(
    measured: Measurement | EpochMeasurement | ProcessesMeasurement, model: str | Path, **options: Any
) -> tuple[Forecast | None, str]:
    """What traincast says about the step that was measured; where it cannot say anything, None and why."""
    from traincast.api.forecasts import forecast
    from traincast.api.models import load_model

    is_cpu = measured.environment.device_kind == "cpu"
    try:
        answer = forecast(
            load_model(model, **options),
            on=_place_of(measured),
            batch_size=measured.batch_size,
            precision=measured.precision,
            optimizer=measured.optimizer,
            compiled=getattr(measured, "compiled", False),
            host=THIS_MACHINE if is_cpu else None,
        )
    except TraincastError as error:  # the measurement stands by itself
        return None, f"No forecast beside it: {error}"
    return answer, ""


def device_of(environment: Environment) -> str:
    """As a forecast names it: this machine; a GPU is called what its driver calls it, or calibrated."""
    if environment.device_kind == "cpu":
        return THIS_MACHINE
    own = read_profile(of_gpu=True)
    return THIS_GPU if own is not None and own.name == environment.device else environment.device


def _place_of(measured: Measurement | EpochMeasurement | ProcessesMeasurement) -> str:
    """As a forecast names it. Processes share this machine."""
    device = device_of(measured.environment)
    n_devices, n_local = (getattr(measured, name, 1) for name in ("n_processes", "n_local"))
    if n_local != n_devices:
        raise InputError(f"the {n_devices} processes ran on several machines, which --on can describe and we cannot.")
    return device if n_devices == 1 else f"{n_devices}x{device}"
