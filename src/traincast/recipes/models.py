"""The networks that recipes train, by their names in the zoo."""

from __future__ import annotations

import torch
from torch import nn

from traincast.errors import UnknownModelError, close_names
from traincast.frontend.models.registry import ZOO

# All take images of 16 x 16 pixels and more.
MODELS = (
    "cifar_resnet18",
    "cifar_resnet20",
    "cifar_resnet32",
    "cifar_resnet44",
    "cifar_resnet56",
    "cifar_resnet110",
    "resnet50",
)


def build_model(name: str, n_classes: int, *, seed: int | None = None) -> nn.Module:
    """The module with its authors' first weights, which a seed makes the same every time.

    Inside `torch.device("meta")` nothing is allocated.
    """
    if name not in MODELS:
        raise UnknownModelError(
            f"There is no recipe for the model '{name}'.{close_names(name, MODELS)} These can be trained: "
            f"{', '.join(MODELS)}."
        )
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        return ZOO[name].build(n_classes=n_classes)


def meta_model(model: str, n_classes: int) -> nn.Module:
    """Shapes without weights, which is all that a forecast needs."""
    with torch.device("meta"):
        return build_model(model, n_classes)
