"""Zoo models as traces: shipped ones load without torch, other options are captured on the spot."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import MissingExtraError
from traincast.frontend.models.registry import find
from traincast.trace.file import SUFFIX, parse_trace

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

FOLDER = "data/zoo"


def load_zoo_model(name: str, **options: int | str) -> Trace:
    """The trace of a zoo model; with its default options it needs nothing but the package."""
    model = find(name)
    chosen = model.complete(**options)
    if chosen == model.options:
        content = resources.files("traincast").joinpath(FOLDER, f"{name}{SUFFIX}").read_bytes()
        return parse_trace(content, where=f"the shipped trace of {name}", is_shipped=True)
    return capture_zoo_model(name, **options)


def capture_zoo_model(name: str, **options: int | str) -> Trace:
    """Builds the model on meta tensors and captures it with its own loss."""
    given = {option: value for option, value in options.items() if value != find(name).options.get(option)}
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(f"{name} with {_shown(given) or 'a new capture'}", extra="torch") from error
    from traincast.frontend.capturing.capture import capture
    from traincast.frontend.models.training_step import build_for_training

    with torch.device("meta"):
        module, example, loss = build_for_training(name, **options)
    label = f"{name} ({_shown(given)})" if given else name
    return capture(module, example, loss=loss, name=label)


def _shown(options: dict[str, int | str]) -> str:
    return ", ".join(f"{option}={value}" for option, value in options.items())


def write_zoo(folder: Path, names: list[str]) -> list[Path]:
    """Captures zoo models and writes their traces; what ships was made by this."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        path = folder / f"{name}{SUFFIX}"
        capture_zoo_model(name).save(path)
        paths.append(path)
    return paths
