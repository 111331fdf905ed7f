"""What is trained, and what memory a step of it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.arguments import checked
from traincast.errors import InputError, MissingExtraError
from traincast.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.memory.estimate import StepMemory


@checked
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


@checked
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
    from traincast.hardware.machines import find_single_device
    from traincast.memory.estimate import step_memory

    if devices is not None and on is None:
        raise InputError("A file of devices is read to look one up: give the name of that device, too.")
    trace = load_model(model)
    settings = trace.defaults.override(precision, optimizer)
    device = find_single_device(on, devices_file=devices) if on is not None else None
    return step_memory(trace, batch_size, settings=settings, device=device)
