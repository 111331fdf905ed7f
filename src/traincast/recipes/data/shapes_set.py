"""The made-up shapes as a data set: 'shapes'."""

from __future__ import annotations

import torch

from traincast.errors import InputError
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages
from traincast.recipes.data.shapes import CLASSES, N_TEST, N_TRAIN, shape_images

_USUAL_SIDE, _LEAST_SIDE = 16, 8


def read_shapes(*, image_side: int | None = None) -> ImageDataset:
    """400 images to learn from and 100 to be judged by, drawn anew at every size."""
    side = _USUAL_SIDE if image_side is None else image_side
    if side < _LEAST_SIDE:
        raise InputError(f"Shapes of {side} x {side} pixels cannot be told apart: take {_LEAST_SIDE} or more.")
    parts = []
    for n_each, seed in ((N_TRAIN, 0), (N_TEST, 1)):
        images, labels = shape_images(side=side, n_each=n_each, seed=seed)
        stored = StoredImages(torch.from_numpy(images))
        parts.append(LabeledImages(images=stored, labels=torch.from_numpy(labels), class_names=CLASSES))
    pixels = shape_images(side=side, n_each=N_TRAIN, seed=0)[0] / 255
    mean, std = pixels.mean(axis=(0, 2, 3)).tolist(), pixels.std(axis=(0, 2, 3)).tolist()
    return ImageDataset(name="shapes", train=parts[0], test=parts[1], mean=tuple(mean), std=tuple(std))
