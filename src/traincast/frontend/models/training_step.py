"""What a training step of a zoo model needs: the module, an example batch and a loss.

The labels are zeros made inside the loss: a capture asks for shapes, and any valid label costs the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from traincast.frontend.models.registry import find

Inputs = tuple[Any, ...]
Example = Callable[[int], Inputs]
Loss = Callable[[Any, Inputs], Any]


def build_for_training(name: str, **options: int | str) -> tuple[nn.Module, Example, Loss]:
    """The module, the example (batch size -> positional arguments), the loss (output, arguments -> scalar).

    All tensors go to torch's default device: inside `torch.device("meta")` nothing is allocated.
    """
    model = find(name)
    chosen = model.complete(**options)

    def example(batch_size: int) -> Inputs:
        if model.n_channels is None:
            return (torch.zeros(batch_size, chosen["seqlen"], dtype=torch.long),)
        side = chosen["image_size"]
        return (torch.zeros(batch_size, model.n_channels, side, side),)

    loss = label_loss if chosen.get("head") == "mlm" else LOSSES[model.loss]
    return model.build(**options), example, loss


def label_loss(logits: Tensor, inputs: Inputs) -> Tensor:
    """Cross-entropy against one label per image, or per position of a text."""
    labels = logits.new_zeros(logits.shape[:-1], dtype=torch.long)
    return cross_entropy(logits.flatten(0, -2), labels.flatten())


def binary_loss(logits: Tensor, inputs: Inputs) -> Tensor:
    """Binary cross-entropy; the sigmoid is part of it."""
    return binary_cross_entropy_with_logits(logits, torch.zeros_like(logits))


def next_token_loss(logits: Tensor, inputs: Inputs) -> Tensor:
    """Each position predicts the token after it, in float32: sums over a large vocabulary need the digits."""
    predicted = logits[:, :-1].float()
    following = inputs[0][:, 1:]
    return cross_entropy(predicted.flatten(0, 1), following.flatten())


def span_loss(logits: Tensor, inputs: Inputs) -> Tensor:
    """Where the answer starts and where it ends: two classifications over the positions, averaged."""
    starts, ends = logits.unbind(-1)
    position = logits.new_zeros(logits.shape[0], dtype=torch.long)
    return (cross_entropy(starts, position) + cross_entropy(ends, position)) / 2


LOSSES: dict[str, Loss] = {
    "labels": label_loss,
    "binary": binary_loss,
    "next-token": next_token_loss,
    "span": span_loss,
}
