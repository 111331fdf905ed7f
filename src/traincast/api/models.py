"""What is trained, and what memory a step of it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.errors import InputError, MissingExtraError
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.options.types import as_annotated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincast.forecasting.layer_table import LayerTable
    from traincast.hardware.device import Device
    from traincast.memory.estimate import StepMemory
    from traincast.trace.trace import Trace


@question
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
    from traincast.trace.trace import Trace

    if isinstance(model, Trace):
        return model
    if isinstance(model, (str, Path)):
        from traincast.frontend.source import load

        return load(as_annotated("model", model, "str | Path"), **options)
    if any(base.__module__.partition(".")[0] == "keras" for base in type(model).__mro__):
        from traincast.frontend.capturing.capture import capture_step
        from traincast.frontend.keras_model.reader import read_keras

        return capture_step(read_keras(model, **options))
    raise InputError(
        f"load_model takes a name, a path or a Keras model, but was given a {type(model).__name__}; "
        "a torch module is captured with traincast.capture(module, example)."
    )


@question
def estimate_memory(
    model: o.Model, batch_size: o.BatchSize = 1, *, on: o.OneDevice = None, **options: Unpack[o.MemoryOptions]
) -> StepMemory:
    """Peak bytes of one step by kind; with `on`, whether it fits that device and the largest batch that does."""
    from traincast.memory.estimate import step_memory

    device = _one_device(on, options)
    trace = load_model(model, **model_options(options))
    settings = trace.defaults.chosen(options)
    return step_memory(trace, batch_size, settings=settings, device=device)


@question
def layers(
    model: o.Model,
    batch_size: o.BatchSize = 1,
    *,
    by: o.By = "module",
    tree: o.Tree = False,
    sort: o.Sort = "model",
    top: o.Top = None,
    on: o.OneDevice = None,
    **options: Unpack[o.LayerOptions],
) -> LayerTable:
    """What each layer asks for: shapes, parameters, flop, bytes; with `on`, its time at the peak of that device."""
    from traincast.forecasting.layer_table import check_grouping, layer_table

    grouping = check_grouping(by, is_tree=tree)
    device = _one_device(on, options)
    trace = load_model(model, **model_options(options))
    precision = trace.defaults.override(options["precision"], None).precision
    table = layer_table(trace, batch_size, by=grouping, device=device, precision=precision)
    return table.sorted(sort, top=top)


def model_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `load_model` that somebody gave."""
    return {name: options[name] for name in o.ModelOptions.__annotations__ if options.get(name) is not None}


def trace_of(model: str | Path | Trace, options: Mapping[str, Any], *, optimizer: str | None) -> Trace:
    """The trace of what was asked for: training steps, or forward passes of the trained model."""
    if options["mode"] == "train":
        return load_model(model, **model_options(options))
    if optimizer not in (None, "none"):
        raise InputError(f"Inference updates no weights, so it has no optimizer: leave '{optimizer}' out.")
    if options.get("accumulation_steps", 1) > 1:
        raise InputError("Inference accumulates no gradients: leave the accumulation steps out.")
    if options.get("curve") is not None:
        raise InputError("Inference reaches no target, as it learns nothing: leave the target and its curve out.")
    from traincast.trace.forward_only import forward_only

    return forward_only(load_model(model, **model_options(options)))


def _one_device(on: str | None, options: Mapping[str, Any]) -> Device | None:
    """Looked up before a model is loaded, which may take long."""
    from traincast.hardware.machines import find_single_device

    if on is not None:
        return find_single_device(on, devices_file=options["devices"])
    if options["devices"] is not None:
        raise InputError("A device file needs the name of a device in it: give that, too.")
    return None
