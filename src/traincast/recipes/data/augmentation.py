"""What may be done to a training image without changing what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from traincast.errors import InputError

Tensor = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """A crop out of the image with a black border of `crop_padding` pixels, then a mirror image with a probability."""

    crop_padding: int = 4
    flip_probability: float = 0.5

    def __post_init__(self) -> None:
        if self.crop_padding < 0:
            raise InputError(f"The crop padding should be at least 0 pixels, not {self.crop_padding}.")
        if not 0 <= self.flip_probability <= 1:
            raise InputError(f"A flip probability of {self.flip_probability} is not between 0 and 1.")


def augment(pixels: Tensor, augmentation: Augmentation, generator: Tensor) -> Tensor:
    """Every image cropped and mirrored by its own draw; the size stays."""
    n_images, side, padding = len(pixels), pixels.shape[-1], augmentation.crop_padding
    top, left = torch.randint(0, 2 * padding + 1, (2, n_images, 1), generator=generator)
    is_flipped = torch.rand(n_images, 1, generator=generator) < augmentation.flip_probability
    padded = torch.nn.functional.pad(pixels, (padding, padding, padding, padding))
    # Both moves in one: the place that every pixel comes from. This takes half the time of cropping, then flipping.
    place = torch.arange(side)
    rows, columns = top + place, left + torch.where(is_flipped, side - 1 - place, place)
    source = (rows[:, :, None] * (side + 2 * padding) + columns[:, None, :]).reshape(n_images, 1, -1)
    return padded.flatten(2).gather(2, source.expand(-1, 3, -1)).reshape(pixels.shape)
