"""The samples of one process of several: every N-th, so that all have equally many and together all."""

from __future__ import annotations

import torch

from traincast.errors import InputError
from traincast.recipes.data.batches import Batches
from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings


def training_images(data: ImageDataset, settings: ScalingSettings) -> LabeledImages:
    """All of them, or as many as the settings say, drawn by the seed."""
    n_all, wanted = data.train.n_samples, settings.n_samples
    if wanted is None:
        return data.train
    if not 1 <= wanted <= n_all:
        raise InputError(f"'{data.name}' has {n_all:,} training images, fewer than the {wanted:,} requested.")
    drawn = torch.randperm(n_all, generator=torch.Generator().manual_seed(settings.seed))[:wanted]
    return data.train.take(drawn)


def share_of_images(images: LabeledImages, *, rank: int, n_processes: int) -> LabeledImages:
    """Where N does not divide the images, the last processes get one of the first again, as torch's sampler does it."""
    n_each = -(-images.n_samples // n_processes)
    return images.take(torch.arange(rank, n_each * n_processes, n_processes) % images.n_samples)


def batches_of(data: ImageDataset, settings: ScalingSettings, cell: Cell, *, rank: int) -> Batches:
    """What one process of a cell trains on."""
    own = share_of_images(training_images(data, settings), rank=rank, n_processes=cell.n_devices)
    return Batches(
        own,
        batch_size=cell.batch_size,
        seed=settings.seed,
        mean=data.mean,
        std=data.std,
        augmentation=data.augmentation,
    )
