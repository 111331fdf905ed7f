"""Weights of a file into a module: all but the last layer must fit, and what does not is named."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from traincast.errors import InputError
from traincast.frontend.models.registry import ZOO
from traincast.recipes.transfer_learning.head import last_layer_name
from traincast.units import show_shape

_FAMILIES = ("resnet", "cifar_resnet")
_NAMED = 3
# A counter that old files lack; it plays no part where batch norms have a fixed momentum.
_MAY_BE_MISSING = "num_batches_tracked"
Shapes = Mapping[str, tuple[int, ...]]


def load_trunk(module: nn.Module, weights: Mapping[str, Tensor], *, model: str, where: str) -> None:
    """Loads every layer but the last one, which belongs to other classes and stays as it is."""
    last = last_layer_name(module)
    own = {name: value for name, value in module.state_dict().items() if not _is_in(name, last)}
    given = {name: value for name, value in weights.items() if not _is_in(name, last)}
    troubles = _troubles(_shapes(own), _shapes(given))
    if troubles:
        more = f" and {len(troubles) - _NAMED} more" if len(troubles) > _NAMED else ""
        raise InputError(
            f"The weights of '{where}' do not fit {model}: {', '.join(troubles[:_NAMED])}{more}; "
            f"{_likely(weights, model)}."
        )
    module.load_state_dict(given, strict=False)


def _is_in(name: str, layer: str) -> bool:
    return name.startswith(f"{layer}.")


def _shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _troubles(own: Shapes, given: Shapes) -> list[str]:
    """In the order of the model's layers, then what only the file has."""
    found = []
    for name, shape in own.items():
        if name not in given:
            if not name.endswith(_MAY_BE_MISSING):
                found.append(f"{name} is missing")
        elif given[name] != shape:
            found.append(f"{name} is {show_shape(given[name])} instead of {show_shape(shape)}")
    return found + [f"{name} is not in the model" for name in given if name not in own]


def _likely(weights: Mapping[str, Tensor], model: str) -> str:
    """What the file may be: the model whose trunk it fits, if there is one."""
    given = {name: shape for name, shape in _shapes(weights).items() if not name.endswith(_MAY_BE_MISSING)}
    for candidate in ZOO.values():
        if candidate.module in _FAMILIES and candidate.name != model:
            with torch.device("meta"):
                module = candidate.build()
            last = last_layer_name(module)
            trunk = {name: shape for name, shape in _shapes(module.state_dict()).items() if not _is_in(name, last)}
            trunk = {name: shape for name, shape in trunk.items() if not name.endswith(_MAY_BE_MISSING)}
            if trunk == {name: shape for name, shape in given.items() if not _is_in(name, last)}:
                return f"they look like those of {candidate.name}"
    n_weights = sum(math.prod(shape) for shape in given.values())
    return f"no ResNet of the zoo has these names and shapes ({len(given)} tensors, {n_weights:,} numbers)"
