"""Noisy tags, made from true labels: what people write under their images, for a data set whose truth is known.

An image may have no tag of its own class, and tags of others. Tags are many-hot: bool, images x classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from traincast.errors import InputError
from traincast.recipes.usual import ADDED_FRACTION, DROPPED_FRACTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging:
    """How people tag: whether the true tag is left out, and whether a further one is written."""

    dropped_fraction: float = DROPPED_FRACTION
    added_fraction: float = ADDED_FRACTION

    def __post_init__(self) -> None:
        for name, value in (("dropped", self.dropped_fraction), ("added", self.added_fraction)):
            if not 0 <= value < 1:
                raise InputError(f"The share of tags that are {name} should be at least 0 and below 1, not {value:g}.")


def tag_images(labels: Tensor, *, n_classes: int, tagging: Tagging, seed: int) -> Tensor:
    """The true tag unless dropped, and, for a share of the images, one of another class. Some have none."""
    generator = torch.Generator().manual_seed(seed)
    n = len(labels)
    tags = torch.zeros(n, n_classes, dtype=torch.bool)
    tags[torch.arange(n), labels] = torch.rand(n, generator=generator) >= tagging.dropped_fraction
    has_further = torch.rand(n, generator=generator) < tagging.added_fraction
    if n_classes > 1:
        others = (labels + torch.randint(1, n_classes, (n,), generator=generator)) % n_classes
        tags[torch.arange(n)[has_further], others[has_further]] = True
    return tags


def add_noise(tags: Tensor, fraction: float, *, seed: int) -> Tensor:
    """Each tag, with this probability, becomes one drawn from how often tags are used, as in the paper's test.

    Where an image then has one tag twice, it has it once.
    """
    if not 0 <= fraction <= 1:
        raise InputError(f"The share of noise should be between 0 and 1, not {fraction:g}.")
    if not tags.any():
        return tags.clone()
    generator = torch.Generator().manual_seed(seed)
    images, classes = tags.nonzero(as_tuple=True)
    drawn = torch.multinomial(tags.sum(0).float(), len(images), replacement=True, generator=generator)
    is_replaced = torch.rand(len(images), generator=generator) < fraction
    noisy = torch.zeros_like(tags)
    noisy[images, torch.where(is_replaced, drawn, classes)] = True
    return noisy


def targets_of(tags: Tensor) -> Tensor:
    """What the softmax is trained towards: 1/k for each of an image's k tags. Every image needs one."""
    n_tags = tags.sum(1, keepdim=True)
    if not bool((n_tags > 0).all()):
        raise InputError(f"{int((n_tags == 0).sum())} images have no tag, so there is nothing to train them towards.")
    return tags.float() / n_tags


def check_imbalance(imbalance: float) -> None:
    """Before anything is drawn by it."""
    if not (imbalance >= 1 and math.isfinite(imbalance)):
        raise InputError(f"The commonest class has at least as many images as the rarest, not {imbalance:g} times.")


def long_tail(labels: Tensor, *, n_classes: int, imbalance: float, seed: int) -> Tensor:
    """Places of images such that the commonest class has `imbalance` times as many as the rarest.

    Between them the numbers fall by one factor from class to class; which class is rare is drawn.
    """
    check_imbalance(imbalance)
    generator = torch.Generator().manual_seed(seed)
    most = int(torch.bincount(labels, minlength=n_classes).max())
    ranks = torch.randperm(n_classes, generator=generator).tolist()
    kept = []
    for label, rank in enumerate(ranks):
        own = (labels == label).nonzero().flatten()
        wanted = max(1, round(most * imbalance ** (-rank / max(n_classes - 1, 1))))
        kept.append(own[torch.randperm(len(own), generator=generator)[:wanted]])
    return torch.cat(kept).sort().values
