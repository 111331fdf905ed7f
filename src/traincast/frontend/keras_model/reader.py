"""Read a Keras 3 model or `.keras` file. Keras must run on its torch backend."""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import CaptureError, FileFormatError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.step import TrainingStep
from traincast.report.parsing import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

BACKEND = "KERAS_BACKEND"
# A damaged archive: besides its own error, places before the file's begin, and ways to pack or lock that are none.
_TORN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError)


def read_keras(model_or_path: Any) -> TrainingStep:
    """The training step of a Keras model with known input shapes, called with training=True.

    The weights of a file are not read, and code that is stored in it is not run. The loss is the
    one that the model was compiled with, plus the penalties of regularised weights; without one, the mean of
    the output.
    """
    keras = _keras()
    is_path = isinstance(model_or_path, (str, Path))
    model = _load(keras, Path(model_or_path)) if is_path else model_or_path
    if not isinstance(model, keras.Model):
        raise InputError(f"read_keras needs a Keras model or the path of one, not a {type(model).__name__}.")
    name = Path(model_or_path).stem if is_path else model.name
    inputs = _shapes(model, "inputs", name)
    losses = _losses(keras, model, name)
    targets = _targets(model, losses, name)
    from traincast.frontend.keras_model.module import KerasModule

    return TrainingStep(
        name=name,
        module=KerasModule(model),
        example=_example_maker(inputs, targets),
        loss=_loss(losses) if losses else None,
    )


def _keras() -> Any:
    """Keras on torch: its backend is chosen once, when it is first imported."""
    loaded = "keras" in sys.modules
    before = os.environ.get(BACKEND)
    if not loaded:
        os.environ[BACKEND] = "torch"
    try:
        import keras
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("A Keras model", extra="keras") from error
    finally:
        if not loaded:
            os.environ.pop(BACKEND) if before is None else os.environ.update({BACKEND: before})
    backend = keras.backend.backend()
    if backend != "torch":
        raise CaptureError(
            f"Keras was imported with the backend '{backend}', and a step can be captured on torch only: set "
            f"{BACKEND}=torch in the environment before Keras is imported."
        )
    return keras


def _load(keras: Any, path: Path) -> Any:
    if not path.is_file():
        raise UnknownModelError(f"There is no file {path}; a Keras model is named by the path of its .keras file.")
    try:
        with zipfile.ZipFile(path) as archive:
            config = parse_json(archive.read("config.json"))
    except (*_TORN, KeyError, ValueError) as error:
        raise FileFormatError(
            f"{path} is not a .keras file, or only a part of one; save it with model.save(path)."
        ) from error
    return _from_config(keras, config, path)


def _from_config(keras: Any, config: Any, path: Path) -> Any:
    """Build the model as the file describes it, on meta; its weights stay where they are."""
    import torch

    from traincast.frontend.keras_model.module import on_device

    try:
        with on_device(torch.device("meta")):
            return keras.saving.deserialize_keras_object(config, safe_mode=True)
    except (TypeError, ValueError, KeyError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(". ")
        raise CaptureError(
            f"{path} cannot be loaded by Keras {keras.__version__}: {reason}. Build a model with code of its "
            "own in your own file and pass file.py:factory."
        ) from error


def _shapes(model: Any, what: str, name: str) -> list[tuple[tuple[int, ...], Any]]:
    """Shape without the batch, and dtype, of each input or output."""
    import torch

    known = []
    tensors = getattr(model, what, None)
    if not tensors:
        raise InputError(
            f"The Keras model '{name}' has no known {what}: build it with keras.Input, as a Sequential or "
            "functional model."
        )
    for tensor in tensors:
        dims = tuple(tensor.shape[1:])
        if None in dims:
            raise InputError(
                f"Dimension {dims.index(None) + 1} of '{tensor.name}' in the {what} of the Keras model "
                f"'{name}' is open; give its keras.Input a shape without None."
            )
        known.append((dims, getattr(torch, tensor.dtype)))
    return known


def _losses(keras: Any, model: Any, name: str) -> list[Any]:
    """One Keras loss for each output; none if the model is not compiled with any."""
    loss = getattr(model, "loss", None) if getattr(model, "compiled", False) else None
    if loss is None:
        return []
    n_outputs = len(model.outputs)
    if isinstance(loss, dict):
        flat = [loss.get(key) for key in model.output_names]
    else:
        flat = list(loss) if isinstance(loss, (list, tuple)) else [loss] * n_outputs
    if len(flat) != n_outputs or None in flat:
        raise CaptureError(
            f"The Keras model '{name}' has {n_outputs} outputs and is not compiled with a loss for each."
        )
    try:
        return [keras.losses.get(one) for one in flat]
    except (ValueError, TypeError) as error:  # a name of none, or no name
        reason = " ".join(str(error).split())[:300].rstrip(". ")
        raise CaptureError(
            f"The Keras model '{name}' is compiled with a loss that Keras {keras.__version__} does not know: {reason}. "
            "Compile it with one of keras.losses and save it again."
        ) from error


def _targets(model: Any, losses: list[Any], name: str) -> list[tuple[tuple[int, ...], Any]]:
    """A sparse loss compares with class numbers, the others with something of the output's own shape."""
    import torch

    if not losses:
        return []
    outputs = _shapes(model, "outputs", name)
    sparse = ["sparse" in getattr(loss, "name", getattr(loss, "__name__", "")) for loss in losses]
    return [
        (dims[:-1], torch.int64) if by_number else (dims, torch.float32)
        for (dims, _), by_number in zip(outputs, sparse, strict=True)
    ]


def _example_maker(
    inputs: list[tuple[tuple[int, ...], Any]], targets: list[tuple[tuple[int, ...], Any]]
) -> Callable[[int], dict[str, Any]]:
    def example(batch_size: int) -> dict[str, Any]:
        import torch

        def make(specs: list[tuple[tuple[int, ...], Any]]) -> list[Any]:
            return [torch.zeros(batch_size, *dims, dtype=dtype) for dims, dtype in specs]

        given = {"inputs": make(inputs)}
        return {**given, "targets": make(targets)} if targets else given

    return example


def _loss(losses: list[Any]) -> Callable[[Any, Any], Any]:
    """The sum over the outputs, and the penalties; weights of losses, which cost nothing, are left out."""

    def loss(output: Any, inputs: Any) -> Any:
        import keras

        from traincast.frontend.keras_model.module import on_device

        penalised = isinstance(output, dict) and "penalty" in output
        outputs = keras.tree.flatten(output["outputs"] if penalised else output)
        with on_device(outputs[0].device):
            matched = zip(losses, inputs["targets"], outputs, strict=True)
            parts = [one(target, given) for one, target, given in matched]
        total = sum(part.mean() for part in parts)
        return total + output["penalty"] if penalised else total

    return loss
