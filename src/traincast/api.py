"""What Python users call; the command line calls the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, MissingExtraError
from traincast.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traincast.forecasting.forecast import Forecast
    from traincast.forecasting.question import Question
    from traincast.forecasting.sweep import Sweep
    from traincast.memory.estimate import StepMemory


def capture(
    module: Any,
    example: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    mode: str = "train",
) -> Trace:
    """Records what one step of a torch module asks of a device. No GPU, no memory for weights.

    `module` may be on meta. `example` is a callable batch_size -> inputs (a tensor, a tuple, or a dict of keyword
    arguments), or tensors whose first dimension is the batch. `loss` maps (output, inputs) to a scalar; None takes
    `output.loss`, or else the mean of the logits or first floating tensor. `mode` is "train" or "inference".
    `optimizer` and `precision` are only the defaults of later questions.
    """
    try:
        from traincast.frontend.capturing.capture import capture as run
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("Capturing a module", extra="torch") from error
    return run(module, example, loss=loss, optimizer=optimizer, precision=precision, mode=mode)


def load_model(model: str | Path | Trace, **options: Any) -> Trace:
    """The trace of a model by name or file.

    A zoo name (with n_classes, image_size, seqlen or head), a saved .trace, an .onnx or .keras file, a Hugging Face
    config.json, or "file.py:factory". A Keras model object is captured as it is.
    """
    if isinstance(model, Trace):
        return model
    if isinstance(model, (str, Path)):
        from traincast.frontend.source import load

        return load(model, **options)
    if any(base.__module__.partition(".")[0] == "keras" for base in type(model).__mro__):
        from traincast.frontend.capturing.capture import capture_step
        from traincast.frontend.keras_model.reader import read_keras

        return capture_step(read_keras(model, **options))
    raise InputError(
        f"load_model takes a name, a path or a Keras model, but was given a {type(model).__name__}; "
        "a torch module is captured with traincast.capture(module, example)."
    )


def estimate_memory(
    model: str | Path | Trace,
    batch_size: int,
    *,
    on: str | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    devices: str | Path | None = None,
) -> StepMemory:
    """Peak bytes of one step by kind; with `on`, whether it fits that device and which batch is the largest that does.

    None for precision and optimizer: as captured (zoo: fp32, sgd). `devices` is a file with devices of your own.
    """
    from traincast.hardware.catalog import find_device
    from traincast.memory.estimate import step_memory

    trace = load_model(model)
    settings = trace.defaults.override(precision, optimizer)
    device = find_device(on, devices_file=devices) if on is not None else None
    return step_memory(trace, batch_size, settings=settings, device=device)


def forecast(
    model: str | Path | Trace,
    on: str,
    batch_size: int,
    *,
    n_samples: int | None = None,
    n_epochs: int = 1,
    precision: str | None = None,
    optimizer: str | None = None,
    layout: str = "nchw",
    compiled: bool = False,
    accumulation_steps: int = 1,
    method: str = "traincast",
    ppp: float | None = None,
    host: str | None = None,
    input_samples_per_s: float | None = None,
    price_usd_per_hour: float | None = None,
    devices: str | Path | None = None,
) -> Forecast:
    """What a training run takes on one device: step, epoch and total time, memory, cost.

    `on` is a device name ("T4") or "this-machine". `batch_size` is that of one update; with `accumulation_steps` it is
    shared by so many passes. None for precision and optimizer: as captured (zoo: fp32, sgd). `method` is "traincast",
    "roofline", "paleo" (with `ppp`, the fraction of the peaks that it reaches) or "layerwise". `host` dispatches the
    ops: "torch-eager" (the default), "tf1-session", "tf2-keras" or "this-machine". `input_samples_per_s` is what the
    data loader can deliver. `devices` is a file with devices of your own.
    """
    from traincast.forecasting.sweep import forecast_step

    (question,) = _questions(
        model,
        [on],
        method=method,
        layout=layout,
        compiled=compiled,
        ppp=ppp,
        host=host,
        devices=devices,
        precision=precision,
        optimizer=optimizer,
        batch_size=batch_size,
        accumulation_steps=accumulation_steps,
        n_samples=n_samples,
        n_epochs=n_epochs,
        input_samples_per_s=input_samples_per_s,
        price_usd_per_hour=price_usd_per_hour,
    )
    return forecast_step(question)


def forecast_many(model: str | Path | Trace, on: Sequence[str], batch_sizes: Sequence[int], **options: Any) -> Sweep:
    """Forecasts on several devices at several batch sizes; options are those of `forecast`."""
    from traincast.forecasting.sweep import forecast_many as run

    if not len(batch_sizes):
        raise InputError("A sweep needs at least one device and one batch size.")
    return run(_questions(model, on, batch_size=batch_sizes[0], **options), batch_sizes)


def _questions(
    model: str | Path | Trace,
    places: Sequence[str],
    *,
    method: str = "traincast",
    layout: str = "nchw",
    compiled: bool = False,
    ppp: float | None = None,
    host: str | None = None,
    devices: str | Path | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    **run: Any,
) -> list[Question]:
    """The same run at several places. Names become what they stand for, with what had to be assumed for that."""
    from traincast.forecasting.place import find_place
    from traincast.forecasting.question import Question
    from traincast.hardware.host import DEFAULT_HOST, find_host
    from traincast.kernels.methods import make_method

    chosen = make_method(method, layout=layout, ppp=ppp)
    found_host = find_host(host or DEFAULT_HOST)
    assumed = []
    if method == "paleo" and ppp is None:
        assumed.append("Paleo with a PPP of 1 reaches the datasheet's peaks, which no device does: too fast.")
    if host is not None and found_host.name != host.strip().lower():
        assumed.append(found_host.notes)
    found = [find_place(on, devices_file=devices) for on in places]
    trace = load_model(model)
    settings = trace.defaults.override(precision, optimizer)
    return [
        Question(
            trace=trace,
            device=device,
            settings=settings,
            method=chosen,
            host=found_host,
            compiled=compiled,
            warnings=(*warnings, *assumed),
            **run,
        )
        for device, warnings in found
    ]
