"""From a name or a module to a model that really runs: with weights, on inputs with values."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, MissingExtraError, UnknownModelError, close_names
from traincast.report.input_files import is_there

if TYPE_CHECKING:
    from traincast.frontend.step import TrainingStep
    from traincast.measurement.runnable import Runnable

_KINDS = "a zoo name ('traincast models' lists them), an .onnx, .keras or config.json file, or file.py:factory"


def runnable_of(model: str | Path, **options: Any) -> Runnable:
    """A model by name or file, with real weights on the CPU.

    Options are those of `load_model`. A zoo model or a Hugging Face config starts as its authors initialise it, an
    .onnx or .keras file brings its weights. Inputs that only stand for their shape are drawn at random.
    """
    require_torch("Measuring a step")
    from traincast.measurement.failures import failure, is_out_of_memory

    try:
        return _built(str(model), options)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise failure(f"Building {model}", error) from error


def _built(text: str, options: dict[str, Any]) -> Runnable:
    from traincast.frontend.models.registry import ZOO

    if text in ZOO:
        return _of_zoo(text, options)
    step = _read(text, options)
    return _runnable(step.name, step.module, step.example, step.loss)


def runnable_from(module: Any, example: Any, loss: Callable[[Any, Any], Any] | None = None) -> Runnable:
    """A copy of the user's module: its own weights and statistics stay as they are."""
    require_torch("Measuring a step")
    import torch

    if not isinstance(module, torch.nn.Module):
        raise InputError(f"A step can be measured for a torch.nn.Module or a name, not for a {type(module).__name__}.")
    try:
        copied = copy.deepcopy(module)
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{type(module).__name__} cannot be copied ({error}): build it in your own file and pass file.py:factory."
        ) from error
    return _runnable(type(module).__name__, copied, _made_from(example), loss)


def require_torch(what: str, *, extra: str = "torch") -> None:
    """One sentence where it is not installed, with the extra that brings it and all else that is needed."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(what, extra=extra) from error


def _runnable(
    name: str, module: Any, example: Callable[[int], Any], loss: Callable[[Any, Any], Any] | None
) -> Runnable:
    from traincast.frontend.capturing.meta_module import call
    from traincast.frontend.capturing.run_step import scalar_loss
    from traincast.measurement.runnable import Runnable

    on_meta = [path for path, tensor in (*module.named_parameters(), *module.named_buffers()) if tensor.is_meta]
    if on_meta:
        raise InputError(
            f"{name} has no weights to run with: '{on_meta[0]}' and {len(on_meta) - 1} more are on the meta device. "
            "Build it on the CPU, where weights have values."
        )
    return Runnable(
        name=name,
        module=module,
        make_inputs=lambda batch_size: _with_values(example(batch_size)),
        forward=call,
        loss=lambda output, inputs: scalar_loss(output, inputs, loss),
    )


def _of_zoo(name: str, options: dict[str, Any]) -> Runnable:
    import torch

    from traincast.frontend.models.registry import find
    from traincast.frontend.models.training_step import build_for_training

    module, example, loss = build_for_training(name, **options)
    tables = [part.num_embeddings for part in module.modules() if isinstance(part, torch.nn.Embedding)]

    def drawn(tensor: Any) -> Any:
        """A zoo example is all zeros: one token again and again would be read from the cache."""
        if tensor.is_floating_point():
            return torch.randn_like(tensor)
        return torch.randint_like(tensor, tables[0]) if tables else tensor

    def make_inputs(batch_size: int) -> Any:
        return tuple(drawn(tensor) for tensor in example(batch_size))

    given = {option: value for option, value in options.items() if value != find(name).options.get(option)}
    shown = ", ".join(f"{option}={value}" for option, value in given.items())
    return _runnable(f"{name} ({shown})" if shown else name, module, make_inputs, loss)


def _read(text: str, options: dict[str, Any]) -> TrainingStep:
    path = Path(text)
    if ".py:" in text or text.endswith(".py"):
        from traincast.frontend.python_file import read_factory

        return read_factory(text, **options)
    if not is_there(path):
        from traincast.frontend.models.registry import ZOO

        raise UnknownModelError(f"No model named '{text}'.{close_names(text, ZOO)} Give {_KINDS}.")
    if path.is_dir() or path.suffix.lower() == ".json":
        return _read_config(path, options)
    if path.suffix.lower() in (".onnx", ".keras"):
        if options:
            raise InputError(f"'{text}' takes no options, but {', '.join(options)} was given.")
        return _read_onnx(path) if path.suffix.lower() == ".onnx" else _read_keras(path)
    if path.suffix == ".trace":
        raise InputError(f"'{text}' is a saved trace: it has shapes but no module to run. Give {_KINDS}.")
    raise InputError(f"'{text}' is not a model that can be run: give {_KINDS}.")


def _read_config(path: Path, options: dict[str, Any]) -> TrainingStep:
    """The frontend builds on meta; transformers builds the same class again, initialised, from the prepared config."""
    from traincast.frontend.hugging_face.config import read_config
    from traincast.frontend.hugging_face.values import expect_full_rows

    step = read_config(path, **options)
    module = type(step.module)._from_config(step.module.config)
    if getattr(module, "loss_type", "") is None:
        module.loss_type = step.module.loss_type
    expect_full_rows(module)
    return replace(step, module=module)


def _read_onnx(path: Path) -> TrainingStep:
    from traincast.frontend.onnx_model.reader import read_onnx

    return read_onnx(path, with_weights=True)


def _read_keras(path: Path) -> TrainingStep:
    """Read once without weights: that checks the file and chooses the backend. Code stored in it is not run."""
    from traincast.frontend.keras_model.reader import read_keras

    name = read_keras(path).name
    import keras

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the state of its optimizer, which is not asked for
        model = keras.saving.load_model(path, safe_mode=True)
    return replace(read_keras(model), name=name)


def _made_from(example: Any) -> Callable[[int], Any]:
    """Tensors become a batch of any size by repeating their samples: real values keep what depends on them."""
    import torch

    from traincast.frontend.capturing.meta_module import batched_example, map_tensors
    from traincast.frontend.capturing.recorder import tensors_in

    if callable(example) and not isinstance(example, torch.Tensor):
        return batched_example(example)
    batched_example(example)  # says what is wrong with an example without a batch
    batch = next(tensor.shape[0] for tensor in tensors_in(example) if tensor.dim())

    def resized(tensor: Any, batch_size: int) -> Any:
        if not tensor.dim() or tensor.shape[0] != batch:
            return tensor
        return tensor[torch.arange(batch_size, device=tensor.device) % batch]

    return lambda batch_size: map_tensors(example, lambda tensor: resized(tensor, batch_size))


def _with_values(inputs: Any) -> Any:
    """What is on meta gets values: noise where numbers are, zeros where labels or tokens are."""
    import torch

    from traincast.frontend.capturing.meta_module import map_tensors

    def valued(tensor: Any) -> Any:
        if not tensor.is_meta:
            return tensor
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, dtype=tensor.dtype)
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    return map_tensors(inputs, valued)
