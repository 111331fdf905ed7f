"""What a recipe is going to do, told before it does it: enough for a forecast, without a step being made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from traincast.errors import InputError
from traincast.recipes.data.batches import Batches
from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.engine.feed import evaluation_batches, train_batches
from traincast.recipes.engine.settings import TrainSettings


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Stage:
    """Training with its evaluations, or one pass (`n_epochs` passes) of inference over samples.

    Stages that have the very same `make_module` are captured once. `reads` and `reads_test` are what really reads the
    batches, so that the input can be timed; None where the samples are in memory as the step takes them.
    """

    name: str
    kind: Literal["train", "inference"]
    make_module: Callable[[], nn.Module]
    example: Callable[[int], Tensor]
    n_samples: int
    n_epochs: int = 1
    batch_size: int
    optimizer: str = "none"
    precision: str = "fp32"
    n_test_samples: int = 0
    n_evaluations: int = 0
    reads: Batches | None = None
    reads_test: Batches | None = None
    device: str = "cpu"  # that it runs on here
    n_runs: int = 1  # that the epochs are divided into, each with a log and a checkpoint of its own

    def __post_init__(self) -> None:
        if min(self.n_samples, self.n_epochs, self.batch_size) < 1:
            raise InputError(f"The stage '{self.name}' has no samples, epochs or batch size.")

    @property
    def n_steps(self) -> int:
        return -(-self.n_samples // self.batch_size) * self.n_epochs


def train_stage(name: str, make_module: Callable[[], nn.Module], data: ImageDataset, settings: TrainSettings) -> Stage:
    """The stage that `train(module, data, settings, ...)` is. `make_module` may build on meta."""
    return Stage(
        name=name,
        kind="train",
        make_module=make_module,
        example=example_of(data.train),
        n_samples=settings.n_samples or data.train.n_samples,
        n_epochs=settings.n_epochs,
        batch_size=settings.batch_size,
        optimizer=settings.optimizer,
        precision=settings.precision,
        n_test_samples=data.test.n_samples,
        n_evaluations=settings.n_evaluations(),
        reads=train_batches(data, settings),
        reads_test=evaluation_batches(data.test, data, settings.batch_size),
        device=settings.device,
    )


def inference_stage(
    name: str, make_module: Callable[[], nn.Module], images: LabeledImages, data: ImageDataset, *, batch_size: int
) -> Stage:
    """One pass of a module over images, as `outputs` makes it; normalised as `data` says."""
    return Stage(
        name=name,
        kind="inference",
        make_module=make_module,
        example=example_of(images),
        n_samples=images.n_samples,
        batch_size=batch_size,
        reads=evaluation_batches(images, data, batch_size),
    )


def example_of(images: LabeledImages) -> Callable[[int], Tensor]:
    """A batch of that size without its pixels: a forecast needs the shape alone, however large the images are."""
    side = images.image_side
    return lambda batch_size: torch.empty(batch_size, 3, side, side, device="meta")
