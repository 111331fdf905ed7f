"""Which classes are learned first, and to which the network is carried over."""

from __future__ import annotations

from dataclasses import replace

import torch

from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.data.shapes_set import read_shapes

_FEWEST_CLASSES = 4


def halves(data: ImageDataset) -> tuple[ImageDataset, ImageDataset]:
    """What to learn from scratch first, and what the network is carried over to: each half of the classes.

    Of too few classes there is no half to learn: then the made-up shapes come first, and all classes are the target.
    """
    names = data.train.class_names
    if len(names) < _FEWEST_CLASSES:
        return read_shapes(image_side=data.train.image_side), data
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
