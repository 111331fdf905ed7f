"""Images with labels, whether they are held in memory or decoded when they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from traincast.errors import InputError
from traincast.recipes.data.augmentation import Augmentation

Tensor = Any  # torch.Tensor; torch's own annotations stay out of the type check


class Images(Protocol):
    """Where pixels come from."""

    @property
    def side(self) -> int:
        """Height and width of every image, in pixels."""

    def __len__(self) -> int: ...

    def read(self, index: Tensor) -> Tensor:
        """The images of these numbers, in this order: uint8, len(index) x 3 x side x side."""


class StoredImages:
    """Images in memory, enlarged when they are read: every pixel becomes a square of `n_repeats` by `n_repeats`."""

    def __init__(self, pixels: Tensor, *, n_repeats: int = 1) -> None:
        if (
            pixels.dtype != torch.uint8
            or pixels.ndim != 4
            or pixels.shape[1] != 3
            or pixels.shape[2] != pixels.shape[3]
        ):
            raise InputError(
                f"Stored images are uint8 of shape n x 3 x side x side, not {pixels.dtype} of {tuple(pixels.shape)}."
            )
        self._pixels = pixels
        self._n_repeats = n_repeats

    @property
    def side(self) -> int:
        """Height and width of every image as it is read."""
        return int(self._pixels.shape[-1]) * self._n_repeats

    def __len__(self) -> int:
        return len(self._pixels)

    def read(self, index: Tensor) -> Tensor:
        """The images of these numbers, in this order."""
        pixels = self._pixels.index_select(0, index)  # copies whole images; [index] would go pixel by pixel
        if self._n_repeats == 1:
            return pixels
        return pixels.repeat_interleave(self._n_repeats, dim=2).repeat_interleave(self._n_repeats, dim=3)


class ChosenImages:
    """Some images of a source, in an order of their own; an image may be chosen more than once."""

    def __init__(self, source: Images, index: Tensor) -> None:
        self._source = source
        self._index = index

    @property
    def side(self) -> int:
        """Height and width of every image."""
        return self._source.side

    def __len__(self) -> int:
        return len(self._index)

    def read(self, index: Tensor) -> Tensor:
        """The chosen images of these numbers, in this order."""
        return self._source.read(self._index[index])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LabeledImages:
    """Images and what they show: a class number each, or a row of shares over all classes each (soft targets)."""

    images: Images
    labels: Tensor  # int64 of n, or float of n x classes
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise InputError(f"{len(self.images)} images do not match {len(self.labels)} labels.")
        if self.labels.ndim == 2 and self.labels.is_floating_point():
            if self.labels.shape[1] != self.n_classes:
                raise InputError(
                    f"Soft labels of {self.labels.shape[1]} columns do not match {self.n_classes} classes."
                )
        elif self.labels.ndim != 1 or self.labels.dtype != torch.int64:
            raise InputError(
                f"Labels should be int64, one per image, not {self.labels.dtype} of {tuple(self.labels.shape)}."
            )
        elif len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < self.n_classes:
            raise InputError(
                f"Labels from {int(self.labels.min())} to {int(self.labels.max())} are not class numbers: "
                f"{self.n_classes} classes are numbered from 0 to {self.n_classes - 1}."
            )

    @property
    def n_samples(self) -> int:
        """How many images there are."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """How many classes there are, whether or not an image shows each."""
        return len(self.class_names)

    @property
    def image_side(self) -> int:
        """Height and width of every image, in pixels."""
        return self.images.side

    def take(self, index: Tensor) -> LabeledImages:
        """The samples of these numbers, in this order."""
        return LabeledImages(
            images=ChosenImages(self.images, index), labels=self.labels[index], class_names=self.class_names
        )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ImageDataset:
    """What is trained on and what it is judged by; mean and standard deviation are those of pixels in 0..1.

    `augmentation` is the usual one for these images: the lab's, unless a mirror image would show something else.
    """

    name: str
    train: LabeledImages
    test: LabeledImages
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    augmentation: Augmentation = field(default_factory=Augmentation)
    notes: tuple[str, ...] = ()  # what was decided while reading, for people to see
