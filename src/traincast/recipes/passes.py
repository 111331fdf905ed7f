"""Epochs of one length, however few images there are to learn from."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from traincast.errors import InputError
from traincast.recipes.data.images import ChosenImages, ImageDataset, LabeledImages
from traincast.recipes.engine.stages import Stage


def samples_an_epoch(n_images: int, batch_size: int) -> int:
    """As many as whole batches of these images hold, and at least one batch."""
    return max(n_images // batch_size, 1) * batch_size


def others(chosen: Tensor, n: int) -> Tensor:
    """Numbers below n that were not chosen."""
    is_left = torch.ones(n, dtype=torch.bool)
    is_left[chosen] = False
    return is_left.nonzero().flatten()


def passes_over(n_images: int, n_samples: int, *, seed: int) -> Tensor:
    """Numbers of images, at least `n_samples` of them: whole passes and a random part of one for the rest.

    Where there are more images than that, each once: epochs of that length then go through them in turn
    (`TrainSettings.n_samples`), so that none is left out.
    """
    if not n_images:
        raise InputError("No image was selected to train on.")
    n_whole, n_rest = divmod(max(n_samples, n_images), n_images)
    order = torch.randperm(n_images, generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.arange(n_images).repeat(n_whole), order[:n_rest]])


def lengthened(data: ImageDataset, chosen: Tensor, labels: Tensor, *, n_samples: int, seed: int) -> ImageDataset:
    """The data set with these training images, with labels of their own, passed over until they fill `n_samples`.

    Stages that see as many samples as each other can be compared, and forecast before it is known what they will
    learn from. And with 70 labels an epoch of one pass would take less time than the evaluation that ends it.
    """
    index = passes_over(len(chosen), n_samples, seed=seed)
    train = LabeledImages(
        images=ChosenImages(data.train.images, chosen[index]),
        labels=labels[index],
        class_names=data.train.class_names,
    )
    return replace(data, train=train)


def repeated(stage: Stage, n_runs: int) -> Stage:
    """The stage of so many runs, one after the other."""
    n_evaluations = stage.n_evaluations * n_runs
    return replace(stage, n_epochs=stage.n_epochs * n_runs, n_evaluations=n_evaluations, n_runs=stage.n_runs * n_runs)


def exact_name(value: float) -> str:
    """A number as part of a folder's name: short where that is exact, and never the name of another number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
