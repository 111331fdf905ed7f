"""checkpoint.pt: all that a run needs to go on, read back without running anything that the file may hold."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from traincast.errors import FileFormatError, InputError
from traincast.recipes.engine.torch_file import TORN, load_plain

_FORMAT, _VERSION = "traincast checkpoint", 1
_ZIP_BEGINS = b"PK\x03\x04"  # torch.save writes zip files; a bare pickle, its old format, is never opened


def save_checkpoint(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all: a run that is killed while it writes keeps the checkpoint before."""
    half = path.with_name(f".{path.name}.tmp")
    try:
        with half.open("wb") as file:
            torch.save({"format": _FORMAT, "version": _VERSION, **content}, file)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        stays = (
            "the previous one is kept, and the same command continues from it" if path.exists() else "nothing was saved"
        )
        raise InputError(f"The checkpoint '{path}' cannot be written: {_reason(error)}; {stays}.") from error


def _reason(error: BaseException | None) -> str:
    """What the system said. On a full disk torch's zip writer puts an error of its own over that."""
    first = str(error).partition("\n")[0]
    while error is not None:
        if isinstance(error, OSError):
            return error.strerror or str(error)
        error = error.__context__
    return first


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The content, on the CPU; the weights are under "module"."""
    content = _read(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT or not isinstance(content.get("module"), dict):
        raise FileFormatError(f"'{path}' is not a checkpoint of a traincast run.")
    if content.get("version") != _VERSION:
        raise FileFormatError(
            f"'{path}' is a checkpoint of version {content.get('version')!r}; this traincast reads {_VERSION}."
        )
    return content


def load_weights(module: nn.Module, path: Path) -> None:
    """The weights of a checkpoint into a module of the same architecture."""
    put_weights(module, load_checkpoint(path)["module"], path)


def put_weights(module: nn.Module, weights: Mapping[str, Any], path: Path) -> None:
    own = module.state_dict()
    strange = [name for name in (*own, *(name for name in weights if name not in own)) if not _fits(name, own, weights)]
    if strange:
        raise FileFormatError(
            f"'{path}' has the weights of another architecture than {type(module).__name__}: {len(strange)} of "
            f"its {len(own)} tensors do not fit, the first is '{strange[0]}'."
        )
    module.load_state_dict(dict(weights))


def _fits(name: str, own: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    found = weights.get(name)
    return name in own and isinstance(found, torch.Tensor) and bool(found.shape == own[name].shape)


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            begins = file.read(len(_ZIP_BEGINS))
    except OSError as error:
        raise InputError(f"The checkpoint '{path}' cannot be read: {error.strerror or error}.") from error
    if begins != _ZIP_BEGINS:
        raise FileFormatError(f"'{path}' is not a checkpoint: it does not begin like a file of torch.save.")
    try:
        return load_plain(path)
    except (pickle.UnpicklingError, *TORN) as error:
        kind = "has more than tensors and numbers" if isinstance(error, pickle.UnpicklingError) else "is cut short"
        raise FileFormatError(f"'{path}' is not a whole checkpoint of a traincast run: it {kind}.") from error
