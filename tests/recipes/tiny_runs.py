"""Runs so small that a test can make many: 20 random images, a network with a convolution, a norm and a dropout."""

import csv

import torch
from torch import nn

from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.train import train

N_STEPS = 5  # of an epoch: 18 images by 4
SETTINGS = TrainSettings(
    n_epochs=3, batch_size=4, learning_rate=0.05, seed=7, augmentation=Augmentation(crop_padding=1)
)


def tiny_data(seed=0, n_train=18, n_test=7):
    def drawn(n, offset):
        generator = torch.Generator().manual_seed(seed + offset)
        pixels = torch.randint(0, 256, (n, 3, 8, 8), dtype=torch.uint8, generator=generator)
        return LabeledImages(images=StoredImages(pixels), labels=torch.arange(n) % 3, class_names=("a", "b", "c"))

    return ImageDataset(
        name="tiny", train=drawn(n_train, 0), test=drawn(n_test, 1000), mean=(0.5, 0.5, 0.5), std=(0.3, 0.3, 0.3)
    )


def tiny_net(seed=0, width=4):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, width, 3),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(36 * width, 3),
    )


def tiny_run(folder, settings=SETTINGS, *, net=None, data=None, **options):
    return train(net or tiny_net(), data or tiny_data(), settings, folder, name="tiny", **options)


def rows_of(folder):
    """The log without its clock."""
    with (folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["seconds"]
    return rows
