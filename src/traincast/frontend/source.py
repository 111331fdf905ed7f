"""From what the user typed to a trace: a zoo name, a file, or a factory in the user's own Python file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, UnknownModelError, close_names
from traincast.frontend.models.named import find_named, named_models
from traincast.frontend.models.registry import ZOO
from traincast.frontend.named import load_named
from traincast.frontend.zoo import load_zoo_model
from traincast.report.input_files import naming
from traincast.trace.file import SUFFIX, is_trace, read_trace

if TYPE_CHECKING:
    from traincast.frontend.step import TrainingStep
    from traincast.trace.trace import Trace

_LONGEST_NAME = 255  # of a file
KINDS = "a zoo name ('traincast models' lists them), a file.trace, .onnx, .keras, config.json or file.py:factory"


def load(model: str | Path, **options: Any) -> Trace:
    """The trace of a model that is named by a string or a path."""
    text = str(model)
    if not text.strip():
        raise InputError(f"The name of a model is empty: give {KINDS}.")
    if any(len(part) > _LONGEST_NAME for part in Path(text).parts):
        raise InputError(f"The name of a model has at most {_LONGEST_NAME} letters, as that of a file: give {KINDS}.")
    if text in ZOO:
        return load_zoo_model(text, **options)
    named = find_named(text) if not Path(text).exists() else None
    if named is not None:
        return load_named(named, **options)
    if ".py:" in text or text.endswith(".py"):
        return _captured(_read_factory, text, options)
    path = Path(text)
    reader = _READERS.get(path.suffix.lower())
    if path.is_dir() and (path / "config.json").is_file():
        reader = _read_config
    if path.is_file() and (path.suffix == SUFFIX or is_trace(path)):
        _refuse(text, options)
        return read_trace(path)
    if not path.exists():
        raise _unknown(text, looks_like_path=reader is not None or path.suffix == SUFFIX or len(path.parts) > 1)
    if reader is None:
        raise InputError(f"'{text}' is not a model that traincast can read: give {KINDS}.")
    return _captured(reader, text, options)


def _captured(reader: Callable[..., TrainingStep], text: str, options: dict[str, Any]) -> Trace:
    """What a user's own code prints meanwhile goes to stderr: stdout holds the answer, which may be JSON."""
    with redirect_stdout(sys.stderr), naming(text):
        try:
            step = reader(text, **options)
        except TypeError as error:
            if "unexpected keyword argument" not in str(error) or not options:
                raise
            raise InputError(f"'{text}' does not take the options {', '.join(options)}: {error}.") from error
        if reader is _read_config:
            from traincast.frontend.capturing.repeating import capture_repeating

            return capture_repeating(step)
        from traincast.frontend.capturing.capture import capture_step

        return capture_step(step)


def _refuse(text: str, options: dict[str, Any]) -> None:
    if options:
        raise InputError(f"'{text}' is a saved trace and takes no options, but {', '.join(options)} was given.")


def _unknown(text: str, *, looks_like_path: bool) -> UnknownModelError:
    if looks_like_path:
        return UnknownModelError(f"There is no file '{text}'. A model is {KINDS}.")
    return UnknownModelError(
        f"No model named '{text}'.{close_names(text, [*ZOO, *named_models()])} A model is {KINDS}."
    )


def _read_factory(text: str, **options: Any) -> TrainingStep:
    from traincast.frontend.python_file import read_factory

    return read_factory(text, **options)


def _read_onnx(text: str, **options: Any) -> TrainingStep:
    from traincast.frontend.onnx_model.reader import read_onnx

    return read_onnx(text, **options)


def _read_keras(text: str, **options: Any) -> TrainingStep:
    from traincast.frontend.keras_model.reader import read_keras

    return read_keras(text, **options)


def _read_config(text: str, **options: Any) -> TrainingStep:
    from traincast.frontend.hugging_face.config import read_config

    return read_config(text, **options)


_READERS: dict[str, Callable[..., TrainingStep]] = {
    ".onnx": _read_onnx,
    ".keras": _read_keras,
    ".json": _read_config,
}
