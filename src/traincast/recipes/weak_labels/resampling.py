"""Square-root resampling: rare tags are seen more often than they are used, common ones less."""

from __future__ import annotations

import torch
from torch import Tensor

from traincast.errors import InputError


def square_root_weights(tags: Tensor) -> Tensor:
    """How often each image is drawn, 1 on average: by its rarest tag, one over the square root of its use.

    Mahajan et al. repeat a tag max(1, sqrt(t / f)) times, f being how often it is used, and an image as often as the
    most repeated of its tags. With t at the commonest tag no tag is held at 1, and that is this weight.
    """
    if not tags.dim() == 2 or not bool(tags.any(1).all()):
        raise InputError("Resampling needs at least one tag per image.")
    repeats = tags.sum(0).clamp(min=1).double().rsqrt()
    weights = torch.where(tags, repeats, 0.0).amax(1)
    return (weights / weights.mean()).float()
