"""Which classes are learned first, and to which the network is carried over."""

from __future__ import annotations

from dataclasses import replace

import torch

from traincast.errors import InputError
from traincast.recipes.data.images import ImageDataset, LabeledImages

_FEWEST_CLASSES = 4


def halves(data: ImageDataset) -> tuple[ImageDataset, ImageDataset]:
    """The first half of the classes, to learn from scratch, and the other half, which the network never saw."""
    names = data.train.class_names
    if len(names) < _FEWEST_CLASSES:
        raise InputError(
            f"'{data.name}' has {len(names)} classes, too few to train on half of them first: give the weights of "
            "a network that was trained on other data."
        )
    half = len(names) // 2
    return _classes(data, 0, half), _classes(data, half, len(names))


def _classes(data: ImageDataset, first: int, end: int) -> ImageDataset:
    name = f"{data.name}, classes {data.train.class_names[first]} to {data.train.class_names[end - 1]}"
    return replace(data, name=name, train=_only(data.train, first, end), test=_only(data.test, first, end))


def _only(data: LabeledImages, first: int, end: int) -> LabeledImages:
    """Images of these classes, numbered from zero."""
    index = torch.nonzero((data.labels >= first) & (data.labels < end)).flatten()
    taken = data.take(index)
    return replace(taken, labels=taken.labels - first, class_names=data.class_names[first:end])
