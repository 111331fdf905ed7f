"""What makes a run that run: its settings, its data, its model and the weights that it starts from."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from traincast.recipes.engine.settings import TrainSettings

Identity = dict[str, Any]


def identity_of(name: str, module: nn.Module, settings: TrainSettings, data: Mapping[str, Any]) -> Identity:
    """Plain values, for a JSON file and for comparison."""
    return {
        "name": name,
        "settings": settings.to_dict(),
        "data": dict(data),
        "model": {
            "class": type(module).__name__,
            "n_parameters": sum(weight.numel() for weight in module.parameters()),
            "layers": _layers(module),
            "first_weights": _weights(module),
        },
    }


def difference(held: Mapping[str, Any], asked: Mapping[str, Any], path: str = "") -> str:
    """The first thing that is not the same, in words; empty where all is."""
    for key in (*held, *(key for key in asked if key not in held)):
        before, now = held.get(key), asked.get(key)
        where = f"{path}{key}".replace("_", " ")
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            found = difference(before, now, f"{path}{key} " if path or key != "settings" else "")
            if found:
                return found
        elif before != now:
            return f"its {where} is {before!r}, not {now!r}"
    return ""


def _layers(module: nn.Module) -> str:
    """Names, shapes and whether they are trained."""
    told = "".join(f"{name}{tuple(weight.shape)}{weight.requires_grad}" for name, weight in module.named_parameters())
    return f"{zlib.crc32(told.encode()):08x}"


def _weights(module: nn.Module) -> str:
    crc = 0
    for tensor in module.state_dict().values():
        values = tensor.detach().cpu().contiguous().flatten()
        crc = zlib.crc32(values.view(torch.uint8).numpy(), crc) if values.numel() else crc
    return f"{crc:08x}"
