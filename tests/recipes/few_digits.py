"""A small part of the digits, for recipes that train many models."""

import torch

from traincast.recipes.data.images import ImageDataset
from traincast.recipes.data.load import load_dataset
from traincast.recipes.engine.settings import TrainSettings


def few_digits(n_train=96, n_test=40):
    whole = load_dataset("digits", image_side=8)
    return ImageDataset(
        name="few digits",
        train=whole.train.take(torch.arange(n_train)),
        test=whole.test.take(torch.arange(n_test)),
        mean=whole.mean,
        std=whole.std,
    )


def one_epoch(**changes):
    return TrainSettings(**{"n_epochs": 1, "batch_size": 16, "learning_rate": 0.03, "augmentation": None, **changes})


class Broken(Exception):
    """The power fails."""


def breaks_after(n_steps):
    """A listener that lets a recipe make so many steps."""

    def tell(n_done, _):
        if n_done >= n_steps:
            raise Broken

    return tell
