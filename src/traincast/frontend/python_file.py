"""Run a user's own Python file to get a model: "file.py:factory"."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import CaptureError, InputError, MissingExtraError, TraincastError, UnknownModelError, close_names
from traincast.frontend.step import TrainingStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

EXPECTED = "a TrainingStep, (module, example), (module, example, loss), or a module with example_inputs(batch_size)"


def read_factory(spec: str, **options: Any) -> TrainingStep:
    """Call `factory(**options)` of a "file.py:factory".

    The file is the user's own and is run as it is, with its folder on the import path meanwhile. The factory
    returns a TrainingStep; or a module with an example (see `traincast.capture`), and perhaps a loss; or a
    module that has `example_inputs`, either a method batch_size -> inputs or the inputs themselves.
    """
    path, name = _split(spec)
    return _as_step(call_in_file(spec, **options), spec, f"{path.stem}:{name}")


def call_in_file(spec: str, **options: Any) -> Any:
    """What `function(**options)` of a "file.py:function" gives, whatever it is."""
    path, name = _split(spec)
    with _importable(path.parent):
        return _call(_find(_run(path), name, path), options, path, name)


def _split(spec: str) -> tuple[Path, str]:
    file, _, name = spec.rpartition(":")
    if not file or not name.isidentifier():
        raise InputError(f"'{spec}' does not name a factory; write the file and the function as file.py:factory.")
    path = Path(file)
    try:
        is_file = path.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise UnknownModelError(f"Cannot read '{path}': {error.strerror}.") from None
    if not is_file:
        raise UnknownModelError(f"There is no file {path}, which '{spec}' names.")
    return path.resolve(), name


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """The file can import its neighbours while it runs; afterwards the path is as it was."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"traincast_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look their module up by name.
    sys.modules[spec.name] = module
    try:
        with _explained(path, "running the file"):
            spec.loader.exec_module(module)
    except TraincastError:
        del sys.modules[spec.name]
        raise
    return module


def _find(module: ModuleType, name: str, path: Path) -> Callable[..., Any]:
    own = [
        key
        for key, value in vars(module).items()
        if callable(value) and not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    found = getattr(module, name, None)
    if callable(found):
        return found
    what = "is not callable" if hasattr(module, name) else "is not there"
    has = f"it has {', '.join(own)}" if own else "it has no functions"
    raise InputError(f"{path} has no factory '{name}': {name} {what}; {has}.{close_names(name, own)}")


def _call(factory: Callable[..., Any], options: dict[str, Any], path: Path, name: str) -> Any:
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items()) or "no options"
        raise InputError(f"{name}() of {path} cannot be called with {given}: {error}.") from error
    except ValueError:  # a callable written in C has no signature to look at
        pass
    with _explained(path, f"{name}()"):
        return factory(**options)


@contextmanager
def _explained(path: Path, doing: str) -> Iterator[None]:
    """What the user's file raises is told in one sentence, with the line in that file, and chained."""
    try:
        yield
    except TraincastError:
        raise
    except SyntaxError as error:
        raise InputError(f"{error.filename or path}, line {error.lineno}: {error.msg} (SyntaxError).") from error
    except SystemExit as error:  # else a script without a main guard would end the command, perhaps as if all were well
        raise CaptureError(
            f"{path}, line {_line_in(path, error)}: {doing} called sys.exit({error.code!r}): put what runs a script "
            "below 'if __name__ == \"__main__\":'."
        ) from error
    except Exception as error:  # the user's own code: anything may come out of it
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise MissingExtraError(f"{path}, line {_line_in(path, error)}: importing torch", extra="torch") from error
        text = " ".join(str(error).split()).rstrip(".") or "no message"
        raise CaptureError(
            f"{path}, line {_line_in(path, error)}: {doing} raised {type(error).__name__}: {text}."
        ) from error


def _line_in(path: Path, error: BaseException) -> int:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return (lines[-1] if lines else 1) or 1


def _as_step(made: Any, spec: str, label: str) -> TrainingStep:
    if isinstance(made, TrainingStep):
        return made
    if isinstance(made, tuple) and len(made) in (2, 3):
        module, example, loss = (*made, None)[:3]
        _check(module, loss, spec)
        return TrainingStep(name=label, module=module, example=_batched(example), loss=loss)
    if _is_module(made) and hasattr(made, "example_inputs"):
        return TrainingStep(name=label, module=made, example=_batched(made.example_inputs))
    what = f"a {type(made).__name__} without example_inputs" if _is_module(made) else f"{_describe(made)}"
    raise InputError(f"{spec} returned {what}; it must return {EXPECTED}.")


def _check(module: Any, loss: Any, spec: str) -> None:
    if not _is_module(module):
        raise InputError(f"{spec} returned {_describe(module)} for a torch module; it must return {EXPECTED}.")
    if loss is not None and not callable(loss):
        raise InputError(f"{spec} returned {_describe(loss)} for a loss; it must be a function (output, inputs).")


def _batched(example: Any) -> Callable[[int], Any]:
    from traincast.frontend.capturing.meta_module import batched_example

    return batched_example(example)


def _is_module(value: Any) -> bool:
    """A torch module, told without importing torch: a file that made one has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _describe(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
