"""Named weights from a file, without running anything that the file may hold.

A `.safetensors` file has no code to run. All else is read by torch's restricted unpickler (`weights_only=True`), which
makes tensors and plain containers and refuses the rest.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from torch import Tensor

from traincast.errors import FileFormatError, InputError, MissingExtraError
from traincast.recipes.engine.torch_file import TORN, load_plain
from traincast.report.input_files import is_there

# Where training programs keep the weights inside a checkpoint; ours first.
_KEYS = ("module", "state_dict", "model_state_dict", "model")
_WRAPPER = "module."  # DataParallel and DDP put it before every name, and so does a frozen run of ours
_KINDS = "a checkpoint.pt of traincast, a state dict saved by torch.save, or a .safetensors file"


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The tensors of the file by name, on the CPU, without the prefix of a wrapper."""
    path = Path(path)
    if not is_there(path) or not path.is_file():
        what = "is a folder" if is_there(path) and path.is_dir() else "does not exist"
        raise InputError(f"The weights '{path}' cannot be read: it {what}; give {_KINDS}.")
    found = _safetensors(path) if path.suffix == ".safetensors" else _state_dict(_torch_file(path))
    if not found:
        raise FileFormatError(f"'{path}' has no named weights: give {_KINDS}.")
    return _unwrapped(found)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtraError(f"Reading '{path.name}'", extra="recipes") from error
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"'{path}' is not a whole safetensors file ({_first_line(error)}).") from error


def _torch_file(path: Path) -> Any:
    try:
        return load_plain(path)
    except pickle.UnpicklingError as error:
        raise FileFormatError(
            f"'{path}' is not a file of plain weights, and none of its code was run: give {_KINDS}."
        ) from error
    except TORN as error:
        raise FileFormatError(
            f"'{path}' is truncated or not a torch file ({_first_line(error)}): give {_KINDS}."
        ) from error


def _state_dict(loaded: Any) -> dict[str, Tensor]:
    """The innermost dict of tensors; nothing where there is none."""
    if not isinstance(loaded, dict):
        return {}
    for key in _KEYS:
        if isinstance(loaded.get(key), dict):
            return _state_dict(loaded[key])
    is_named = loaded and all(isinstance(name, str) for name in loaded)
    tensors = {name: value for name, value in loaded.items() if isinstance(value, Tensor)}
    return tensors if is_named and len(tensors) == len(loaded) else {}


def _unwrapped(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    while weights and all(name.startswith(_WRAPPER) for name in weights):
        weights = {name.removeprefix(_WRAPPER): value for name, value in weights.items()}
    return weights


def _first_line(error: BaseException) -> str:
    return (str(error).strip().split("\n")[0] or type(error).__name__).rstrip(".")
