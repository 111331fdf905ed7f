"""Real steps on this machine, and what traincast would have said about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.runnables import runnable_from, runnable_of
from traincast.errors import InputError, TraincastError
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.this_machine import THIS_GPU, read_profile
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement
    from traincast.measurement.processes.result import ProcessesMeasurement
    from traincast.records.environment import Environment


@question
def measure(
    module: Any,
    example: Any = None,
    *,
    batch_size: o.BatchToRun,
    optimizer: o.UsedOptimizer = "sgd",
    n_steps: o.TimedSteps = None,
    loss: Callable[[Any, Any], Any] | None = None,
    precision: o.UsedPrecision = "fp32",
    device: o.TorchDevice = "cpu",
    compiled: o.RunsCompiled = False,
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


@question
def measure_epoch(
    module: Any,
    loader: Iterable[Any],
    *,
    inputs: Callable[[Any], Any] | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: o.UsedOptimizer = "sgd",
    n_batches: int | None = None,
    precision: o.UsedPrecision = "fp32",
    device: o.TorchDevice = "cpu",
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
        raise InputError(
            f"the {n_devices} processes ran on several machines, which a forecast can describe and traincast "
            "cannot yet."
        )
    return device if n_devices == 1 else f"{n_devices}x{device}"
