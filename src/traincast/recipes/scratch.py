"""From scratch: a ResNet from its first weights, as the CIFAR-10 lab trains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.result import TrainResult
from traincast.recipes.engine.settings import TrainSettings, settings_like
from traincast.recipes.engine.stages import Stage, train_stage
from traincast.recipes.engine.train import train
from traincast.recipes.models import build_model, meta_model
from traincast.recipes.usual import MODEL, SCRATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchResult:
    """One stage, and all about it."""

    training: TrainResult

    @property
    def stage_seconds(self) -> Mapping[str, float]:
        return {stage_name(self.training.name): self.training.total_s}

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return self.training.to_dict()


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ScratchRecipe:
    """A model of `models.MODELS` on a data set."""

    data: ImageDataset
    model: str = MODEL
    settings: TrainSettings = field(default_factory=partial(settings_like, SCRATCH))

    @property
    def name(self) -> str:
        return "scratch"

    def stages(self) -> list[Stage]:
        """Training, with an evaluation after every epoch."""
        make_module = partial(meta_model, self.model, self.data.train.n_classes)
        return [train_stage(stage_name(self.model), make_module, self.data, self.settings)]

    def run(self, folder: Path, on_progress: Progress | None = None) -> ScratchResult:
        """In a folder of its own; the same recipe in the same folder goes on where it was broken off."""
        module = build_model(self.model, self.data.train.n_classes, seed=self.settings.seed)
        found = train(module, self.data, self.settings, folder, name=self.model, on_progress=on_progress)
        return ScratchResult(training=found)


def stage_name(model: str) -> str:
    return f"train {model}"
