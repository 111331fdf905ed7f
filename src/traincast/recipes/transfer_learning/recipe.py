"""The transfer experiment: which runs it is made of, told before any of them begins.

The grid is that of the course: momentum 0.9, batch 64, and a learning rate that falls tenfold three times. The course
does not say when; here it is after 50, 75 and 90 % of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from traincast.errors import InputError
from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.settings import TrainSettings, check_whole, settings_like
from traincast.recipes.engine.stages import Stage, inference_stage, train_stage
from traincast.recipes.models import meta_model
from traincast.recipes.passes import repeated
from traincast.recipes.transfer_learning.head import Trunk, freeze_all_but_last
from traincast.recipes.transfer_learning.result import TransferResult
from traincast.recipes.transfer_learning.run import FEATURES, SOURCE, run_transfer, trained_network
from traincast.recipes.transfer_learning.task import halves
from traincast.recipes.usual import CHECKPOINT_S, MODEL, N_SOURCE_EPOCHS, TRANSFER
from traincast.trace.settings import check_choice

APPROACHES = ("fine-tune", "frozen", "cached")
RATES = {"fine-tune": (0.1, 0.01, 0.001), "frozen": (1.0, 0.1, 0.01, 0.001), "cached": (1.0, 0.1, 0.01, 0.001)}
MILESTONES = (0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One run of the grid."""

    approach: str
    learning_rate: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class TransferRecipe:
    """A network with weights of a source task, a new last layer, and every approach at every learning rate and seed.

    Without `weights` the source task is the first half of the classes, learned from scratch, and the target is the
    other half. Seeds change the new last layer, the order of the images and their augmentation; the source is one.
    """

    data: ImageDataset
    model: str = MODEL
    weights: Path | None = None
    approaches: tuple[str, ...] = APPROACHES
    rates: tuple[float, ...] | None = None  # for every approach; None: those of the course
    n_epochs: int = TRANSFER.n_epochs
    n_source_epochs: int = N_SOURCE_EPOCHS
    batch_size: int = TRANSFER.batch_size
    n_seeds: int = TRANSFER.n_seeds
    seed: int = 0  # the first of them
    augmentation: Augmentation | Literal["usual"] | None = "usual"
    device: str = "cpu"
    precision: str = "fp32"
    checkpoint_s: float = CHECKPOINT_S

    def __post_init__(self) -> None:
        if not self.approaches:
            raise InputError(f"No approach to try: name some of {', '.join(APPROACHES)}.")
        for approach in self.approaches:
            check_choice("approach", approach, APPROACHES)
        for values in (self.approaches, self.rates or ()):
            if len(set(values)) < len(values):
                raise InputError(
                    f"Each approach and learning rate may occur once: {', '.join(map(str, values))} repeats one."
                )
        if self.rates is not None and not self.rates:
            raise InputError("No learning rate to try.")
        check_whole("n_seeds", self.n_seeds, at_least=1)
        for setting in self.grid():
            self.settings(setting)  # raises at the first number that cannot be
        if self.weights is None:
            check_whole("n_source_epochs", self.n_source_epochs, at_least=1)
            self.source_settings()

    @property
    def name(self) -> str:
        return "transfer"

    @cached_property
    def _halves(self) -> tuple[ImageDataset, ImageDataset]:
        return halves(self.data)

    @property
    def source(self) -> ImageDataset | None:
        """What the network learns first; None where its weights are given."""
        return self._halves[0] if self.weights is None else None

    @property
    def target(self) -> ImageDataset:
        """What it is carried over to."""
        return self._halves[1] if self.weights is None else self.data

    def rates_of(self, approach: str) -> tuple[float, ...]:
        return RATES[approach] if self.rates is None else self.rates

    def grid(self) -> Iterator[Setting]:
        """All runs, approach by approach."""
        for approach in self.approaches:
            for rate in self.rates_of(approach):
                for seed in range(self.seed, self.seed + self.n_seeds):
                    yield Setting(approach=approach, learning_rate=rate, seed=seed)

    def settings(self, setting: Setting) -> TrainSettings:
        """How one run of the grid is trained. Stored features cannot be augmented."""
        return settings_like(
            TRANSFER,
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            learning_rate=setting.learning_rate,
            milestones=MILESTONES,
            seed=setting.seed,
            augmentation=None if setting.approach == "cached" else self.augmentation,
            device=self.device,
            precision=self.precision,
            checkpoint_s=self.checkpoint_s,
        )

    def source_settings(self) -> TrainSettings:
        """How the source task is learned for want of weights."""
        first = Setting(approach="fine-tune", learning_rate=TRANSFER.learning_rate, seed=self.seed)
        return replace(self.settings(first), n_epochs=self.n_source_epochs)

    def stages(self) -> list[Stage]:
        """The source, then each approach with all of its runs; features are computed once for all of theirs."""
        found = []
        if self.source is not None:
            found.append(train_stage(SOURCE, self._module(self.source), self.source, self.source_settings()))
        for approach in self.approaches:
            found += self._stages(approach)
        return found

    def n_runs(self, approach: str) -> int:
        return len(self.rates_of(approach)) * self.n_seeds

    def check_weights(self) -> None:
        """Raises where given weights cannot be read or do not fit: better now than after a forecast."""
        if self.weights is not None:
            trained_network(self, self.weights)

    def run(self, folder: Path, on_progress: Progress | None = None) -> TransferResult:
        """Every run in a folder of its own: what has ended there, well or not, is not run again."""
        return run_transfer(self, Path(folder), on_progress)

    def _stages(self, approach: str) -> list[Stage]:
        target, build = self.target, self._module(self.target)
        one = self.settings(Setting(approach=approach, learning_rate=self.rates_of(approach)[0], seed=self.seed))
        if approach == "fine-tune":
            return [self._all_runs(train_stage(approach, build, target, one))]
        if approach == "frozen":
            return [self._all_runs(train_stage(approach, lambda: freeze_all_but_last(build()), target, one))]
        n_features = Trunk(build()).n_features
        features = inference_stage(FEATURES, lambda: Trunk(build()), target.train, target, batch_size=self.batch_size)
        head = replace(
            train_stage(approach, lambda: _meta_layer(n_features, target.train.n_classes), target, one),
            example=lambda batch_size: torch.zeros(batch_size, n_features),
            reads=None,
            reads_test=None,
        )
        n_images = target.train.n_samples + target.test.n_samples
        all_images = replace(features, n_samples=n_images, device=self.device, precision=self.precision)
        return [all_images, self._all_runs(head)]

    def _all_runs(self, stage: Stage) -> Stage:
        """Those of all rates and seeds of the approach."""
        return repeated(stage, self.n_runs(stage.name))

    def _module(self, data: ImageDataset) -> Build:
        return Build(self.model, data.train.n_classes)


@dataclass(frozen=True, slots=True)
class Build:
    """Makes the network without allocating it. Equal ones are captured once."""

    model: str
    n_classes: int

    def __call__(self) -> nn.Module:
        return meta_model(self.model, self.n_classes)


def _meta_layer(n_features: int, n_classes: int) -> nn.Linear:
    return nn.Linear(n_features, n_classes, device="meta")
