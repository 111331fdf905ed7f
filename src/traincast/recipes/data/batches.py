"""Batches whose order and augmentation follow from a seed, an epoch and a step alone.

A run that was killed enters its epoch at the step where it stopped and sees exactly what it would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch

from traincast.errors import InputError
from traincast.recipes.data.augmentation import Augmentation, augment
from traincast.recipes.data.images import LabeledImages

Tensor = Any
# The first word of every seed, so that order and augmentation never draw from one stream.
_ORDER, _AUGMENT = 1, 2
_MOST_DRAWN = 2**24  # what torch.multinomial can draw from


@dataclass(frozen=True, eq=False, slots=True)
class Batches:
    """The batches of every epoch: float32 images, normalised, with their labels. The last batch may be smaller.

    An epoch has `n_samples`, by default as many as there are. Where it has fewer, each goes on through the shuffled
    data where the one before ended, so that every sample comes before any comes again. With `weights`, an epoch draws
    its samples with replacement, each as often as its weight says.
    """

    data: LabeledImages
    _: KW_ONLY
    batch_size: int
    seed: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    augmentation: Augmentation | None = None
    is_shuffled: bool = True
    weights: Tensor | None = None
    n_samples: int | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"A batch size of {self.batch_size} is below 1.")
        if self.seed < 0:
            raise InputError(f"A seed of {self.seed} is below 0.")
        if self.data.n_samples == 0:
            raise InputError("There are no images to make batches of.")
        if self.n_samples is not None and self.n_samples < 1:
            raise InputError(f"An epoch of {self.n_samples} samples is below 1.")
        if self.weights is not None:
            _check_weights(self.weights, n_samples=self.data.n_samples, is_shuffled=self.is_shuffled)

    @property
    def n_epoch_samples(self) -> int:
        """Samples in one epoch."""
        return self.data.n_samples if self.n_samples is None else self.n_samples

    @property
    def n_steps(self) -> int:
        """Batches in one epoch."""
        return -(-self.n_epoch_samples // self.batch_size)

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of one epoch from `first_step` on."""
        if not 0 <= first_step <= self.n_steps:
            raise InputError(f"An epoch of {self.n_steps} steps has no step {first_step}.")
        return self._epoch(epoch, first_step)

    def _epoch(self, epoch: int, first_step: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = self._order(epoch)
        scale, shift = _normalisation(self.mean, self.std)
        for step in range(first_step, self.n_steps):
            index = order[step * self.batch_size : (step + 1) * self.batch_size]
            pixels = self.data.images.read(index)
            if self.augmentation is not None:
                pixels = augment(pixels, self.augmentation, _generator(_AUGMENT, self.seed, epoch, step))
            yield pixels.float().mul_(scale).add_(shift), self.data.labels[index]

    def _order(self, epoch: int) -> Tensor:
        n_samples = self.n_epoch_samples
        if self.weights is not None:
            generator = _generator(_ORDER, self.seed, epoch)
            return torch.multinomial(self.weights.double(), n_samples, replacement=True, generator=generator)
        n_all, first = self.data.n_samples, epoch * n_samples
        passes = range(first // n_all, -(-(first + n_samples) // n_all))
        start = first - passes.start * n_all
        return torch.cat([self._pass(number) for number in passes])[start : start + n_samples]

    def _pass(self, number: int) -> Tensor:
        """Every sample once."""
        n_all = self.data.n_samples
        if not self.is_shuffled:
            return torch.arange(n_all)
        return torch.randperm(n_all, generator=_generator(_ORDER, self.seed, number))


def _normalisation(mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """(pixel / 255 - mean) / std as one product and one sum: what to multiply by, and what to add."""
    means, stds = (torch.tensor(values, dtype=torch.float64).reshape(3, 1, 1) for values in (mean, std))
    return (1 / (255 * stds)).float(), (-means / stds).float()


def _generator(*words: int) -> Tensor:
    """A generator of its own for every purpose, seed, epoch and step. SeedSequence makes near words unlike."""
    (state,) = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state) >> 1)


def _check_weights(weights: Tensor, *, n_samples: int, is_shuffled: bool) -> None:
    if not is_shuffled:
        raise InputError("Sampling by weight is random, so weighted batches cannot keep the order of the data.")
    if tuple(weights.shape) != (n_samples,):
        raise InputError(f"Weights of shape {tuple(weights.shape)} cannot go with {n_samples} samples.")
    if n_samples > _MOST_DRAWN:
        raise InputError(f"Samples are drawn by weight from at most {_MOST_DRAWN:,}, not from {n_samples:,}.")
    if not bool(torch.isfinite(weights).all()) or float(weights.min()) < 0 or float(weights.sum()) <= 0:
        raise InputError("Weights should be finite, not below 0, and not all 0.")
