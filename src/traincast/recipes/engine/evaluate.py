"""How good a model is on images that it was not trained on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from traincast.recipes.engine.feed import Batched
from traincast.recipes.engine.numerics import Numerics


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Means over `n` images."""

    loss: float
    accuracy: float
    n: int


def evaluate_on(module: nn.Module, batches: Batched, numerics: Numerics) -> Evaluation:
    """The sums stay on the device until the end, so that a GPU is not waited for at every batch."""
    loss, n_right = torch.zeros((), device=numerics.device), torch.zeros((), device=numerics.device)
    n = 0
    for logits, labels in outputs(module, batches, numerics):
        loss += nn.functional.cross_entropy(logits, labels, reduction="sum")
        n_right += count_right(logits, labels)
        n += len(labels)
    return Evaluation(loss=float(loss) / n, accuracy=float(n_right) / n, n=n)


def outputs(module: nn.Module, batches: Batched, numerics: Numerics) -> Iterator[tuple[Tensor, Tensor]]:
    """Float32 logits and labels of every batch, on the device, without gradients and in evaluation mode."""
    with evaluating(module):
        for images, labels in batches.epoch(0):
            moved, there = numerics.move(images, labels)
            with numerics.math(), torch.no_grad(), numerics.autocast():  # not held while the caller works
                logits = module(moved)
            yield logits.float(), there


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode; each part gets its own mode back afterwards, so that what is frozen stays frozen."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, is_training in modes.items():
            part.training = is_training


def count_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Of class numbers, or of shares over all classes, of which the largest counts."""
    wanted = labels if labels.ndim == 1 else labels.argmax(1)
    return (logits.argmax(1) == wanted).sum()
