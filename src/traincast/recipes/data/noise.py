"""Labels made worse on purpose."""

from __future__ import annotations

from typing import Any

import torch

from traincast.errors import InputError

Tensor = Any


def flip_labels(labels: Tensor, share: float, *, n_classes: int, seed: int) -> Tensor:
    """The labels with a share of them replaced by another class, every other class being as likely."""
    if not 0 <= share <= 1:
        raise InputError(f"A share of {share} of the labels is not between 0 and 1.")
    n_flipped = round(share * len(labels))
    if n_flipped and n_classes < 2:
        raise InputError(f"Labels of {n_classes} class cannot be replaced by those of another class.")
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(labels), generator=generator)[:n_flipped]
    flipped = labels.clone()
    if n_flipped:
        steps = torch.randint(1, n_classes, (n_flipped,), generator=generator)  # so many classes further, never 0
        flipped[chosen] = (labels[chosen] + steps) % n_classes
    return flipped
