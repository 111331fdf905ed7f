"""scikit-learn's handwritten digits: 1,797 real images of 8 x 8 pixels that need no download."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from traincast.errors import InputError, MissingExtraError
from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.choose import split_per_class
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages

_SIDE, _USUAL_SIDE = 8, 16  # as stored, and as read: the smallest that the networks of the recipes are fed with
_BRIGHTEST = 16  # pixels are whole numbers from 0 to 16
_TEST_SHARE = 0.2
_SPLIT_SEED = 0  # one split for everybody: accuracies of different runs can be compared


def read_digits(*, image_side: int | None = None) -> ImageDataset:
    """A stratified 80/20 split of the digits, as images of three equal channels, every pixel repeated."""
    side = _USUAL_SIDE if image_side is None else image_side
    if side < _SIDE or side % _SIDE:
        raise InputError(
            f"Digits of {side} x {side} pixels are not possible: the side should be a multiple of {_SIDE}."
        )
    try:
        datasets: Any = importlib.import_module("sklearn.datasets")
    except ImportError:
        raise MissingExtraError("The digits data set", extra="recipes") from None
    digits = datasets.load_digits()
    grey = torch.from_numpy(digits.images).mul(255 / _BRIGHTEST).round().to(torch.uint8)
    images = StoredImages(grey[:, None].repeat(1, 3, 1, 1), n_repeats=side // _SIDE)
    labels = torch.from_numpy(digits.target).long()
    whole = LabeledImages(images=images, labels=labels, class_names=tuple(str(digit) for digit in range(10)))
    train, test = split_per_class(labels, test_share=_TEST_SHARE, seed=_SPLIT_SEED)
    seen = grey[train].double() / 255
    mean, std = float(seen.mean()), float(seen.std(correction=0))
    return ImageDataset(
        name="digits",
        train=whole.take(train),
        test=whole.take(test),
        mean=(mean, mean, mean),
        std=(std, std, std),
        augmentation=Augmentation(crop_padding=2, flip_probability=0.0),  # small images, and a mirrored 2 is no 2
    )
