"""The last layer: found, replaced, or left as the only one that learns."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor, nn

from traincast.errors import InputError


def last_layer_name(module: nn.Module) -> str:
    """The path of the last linear layer, which gives a score to each class."""
    names = [name for name, child in module.named_modules() if isinstance(child, nn.Linear)]
    if not names:
        raise InputError(f"{type(module).__name__} has no linear layer to replace by one for other classes.")
    return names[-1]


def replace_last_layer(module: nn.Module, n_classes: int) -> None:
    """Puts a new layer in its place, with torch's default weights, which depend on torch's seed."""
    name = last_layer_name(module)
    old = module.get_submodule(name)
    like = {"device": old.weight.device, "dtype": old.weight.dtype}
    new = nn.Linear(old.in_features, n_classes, bias=old.bias is not None, **like)
    _put(module, name, new)


class FrozenTrunk(nn.Module):
    """A module of which only the last layer learns.

    Its other weights get no gradient, so nothing runs backward through the trunk. Batch norms stay in evaluation mode
    also while training: they use the statistics of the source task and do not change them, so the features of an image
    depend on that image alone. (Dropout in the trunk is off for the same reason.)
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        module.requires_grad_(False)
        module.get_submodule(last_layer_name(module)).requires_grad_(True)
        self.train()

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.module.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        return self.module(images)


def freeze_all_but_last(module: nn.Module) -> FrozenTrunk:
    """The same module, its weights shared, with all but the last layer frozen."""
    return FrozenTrunk(module)


class Trunk(nn.Module):
    """Everything before the last layer, in evaluation mode: images in, features out."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        name = last_layer_name(module)
        self.n_features: int = module.get_submodule(name).in_features
        self.module = copy.deepcopy(module).requires_grad_(False)
        _put(self.module, name, nn.Identity())
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            return self.module(images)


def _put(module: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, layer)
