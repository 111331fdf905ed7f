"""What the trunk makes of every image, computed once: the last layer then learns from these alone.

The price is that no image is augmented: its features are those of the image as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.engine.checkpoint import load_checkpoint, save_checkpoint
from traincast.recipes.engine.evaluate import outputs
from traincast.recipes.engine.feed import Feed, crc, evaluation_batches, feed_of
from traincast.recipes.engine.folder import make_folder
from traincast.recipes.engine.identity import identity_of
from traincast.recipes.engine.numerics import Numerics
from traincast.recipes.engine.settings import TrainSettings
from traincast.report.json_ import to_json


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Features:
    """One row per image, and how long it took to compute them."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    measured_s: float

    def feed(self, settings: TrainSettings) -> Feed:
        """For a run of the last layer."""
        return Feed(
            train=FeatureBatches(self.train, self.train_labels, settings.batch_size, seed=settings.seed),
            test=FeatureBatches(self.test, self.test_labels, settings.batch_size, seed=None),
            identity={"name": "features", "train": crc(self.train), "test": crc(self.test)},
        )


@dataclass(frozen=True, eq=False, slots=True)
class FeatureBatches:
    """Batches of rows, in an order that depends on seed and epoch alone; without a seed, in the order of the data."""

    features: Tensor
    labels: Tensor
    batch_size: int
    seed: int | None

    @property
    def n_steps(self) -> int:
        """Batches in one epoch."""
        return -(-len(self.labels) // self.batch_size)

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of one epoch from `first_step` on."""
        n = len(self.labels)
        order = np.arange(n) if self.seed is None else np.random.default_rng((self.seed, epoch)).permutation(n)
        for step in range(first_step, self.n_steps):
            index = torch.from_numpy(order[step * self.batch_size : (step + 1) * self.batch_size])
            yield self.features[index], self.labels[index]


def cached_features(trunk: nn.Module, data: ImageDataset, settings: TrainSettings, path: Path) -> Features:
    """The features in the file, if they are those of this trunk and these data; else computed, and written there."""
    whole = identity_of("features", trunk, settings, feed_of(data, settings).identity)
    identity = to_json({"model": whole["model"], "data": whole["data"], "precision": settings.precision})
    labels = {"train_labels": data.train.labels, "test_labels": data.test.labels}
    if path.exists():
        found = load_checkpoint(path)
        if found.get("of") == identity:
            return Features(**found["module"], **labels, measured_s=found["measured_s"])
    start_s = time.perf_counter()
    rows = {part: _features(trunk, getattr(data, part), data, settings) for part in ("train", "test")}
    measured_s = time.perf_counter() - start_s
    # A checkpoint whose tensors are features: written whole or not at all, and read back without running anything.
    make_folder(path.parent)
    save_checkpoint(path, {"module": rows, "of": identity, "measured_s": measured_s})
    return Features(**rows, **labels, measured_s=measured_s)


def _features(trunk: nn.Module, images: LabeledImages, data: ImageDataset, settings: TrainSettings) -> Tensor:
    numerics = Numerics(settings.device, settings.precision)
    batches = evaluation_batches(images, data, settings.batch_size)
    rows = [features.cpu() for features, _ in outputs(numerics.place(trunk), batches, numerics)]
    return torch.cat(rows)  # outside inference mode, so that backward may use them
