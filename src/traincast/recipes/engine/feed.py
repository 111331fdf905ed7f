"""What a run learns from and is tested on: batches, and what tells these data from others."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from traincast.errors import InputError
from traincast.recipes.data.batches import Batches
from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.engine.settings import TrainSettings

_N_LOOKED_AT = 16


class Batched(Protocol):
    """Batches of one data set, the same in every process: they depend on the epoch and the step alone."""

    @property
    def n_steps(self) -> int: ...

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[tuple[Tensor, Tensor]]: ...


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Feed:
    """`identity` are plain values that differ where the data do: a run is resumed only on the same ones."""

    train: Batched
    test: Batched
    identity: Mapping[str, str | int | None]


def feed_of(data: ImageDataset, settings: TrainSettings, weights: Tensor | None = None) -> Feed:
    """The batches of an image data set. `weights` draw the training images with replacement, by weight."""
    if not data.train.n_samples or not data.test.n_samples:
        empty = "training" if not data.train.n_samples else "test"
        raise InputError(f"The data set '{data.name}' has no {empty} images.")
    return Feed(
        train=train_batches(data, settings, weights),
        test=evaluation_batches(data.test, data, settings.batch_size),
        identity={
            "name": data.name,
            "train": _fingerprint(data.train),
            "test": _fingerprint(data.test),
            "sampling_weights": None if weights is None else crc(weights),
        },
    )


def train_batches(data: ImageDataset, settings: TrainSettings, weights: Tensor | None = None) -> Batches:
    """Shuffled, augmented as the settings say."""
    chosen = settings.of(data).augmentation
    assert chosen != "usual"
    return Batches(
        data.train,
        batch_size=settings.batch_size,
        seed=settings.seed,
        mean=data.mean,
        std=data.std,
        augmentation=chosen,
        weights=weights,
        n_samples=settings.n_samples,
    )


def evaluation_batches(images: LabeledImages, data: ImageDataset, batch_size: int) -> Batches:
    """In order and unchanged, normalised as the data set says."""
    return Batches(images, batch_size=batch_size, seed=0, mean=data.mean, std=data.std, is_shuffled=False)


def _fingerprint(images: LabeledImages) -> str:
    """All labels, and a few of the images: these may be a million files."""
    some = torch.linspace(0, images.n_samples - 1, _N_LOOKED_AT).long()
    pixels = crc(images.images.read(some))
    return f"{images.n_samples} images of side {images.image_side}, labels {crc(images.labels)}, pixels {pixels}"


def crc(values: Tensor) -> str:
    """Of all bytes of a tensor."""
    return f"{zlib.crc32(values.detach().cpu().contiguous().numpy().tobytes()):08x}"
