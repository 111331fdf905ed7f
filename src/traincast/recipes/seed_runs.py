"""The training runs of one seed of a recipe, each in a folder of its own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.settings import TrainSettings, check_whole
from traincast.recipes.engine.train import train
from traincast.recipes.models import build_model
from traincast.recipes.step_count import StepCount


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SeedRuns:
    """What the runs of a seed share. Steps are told, and seconds added up, with those of the other seeds."""

    seed: int
    folder: Path
    steps: StepCount
    spent_s: defaultdict[str, float]

    def build(self, model: str, n_classes: int) -> nn.Module:
        """With the first weights of this seed, the same for all of its runs with that network."""
        return build_model(model, n_classes, seed=self.seed)

    def train(
        self,
        module: nn.Module,
        data: ImageDataset,
        settings: TrainSettings,
        *,
        where: str,
        stage: str,
        weights: Tensor | None = None,
    ) -> float:
        """The module itself is trained; gives its accuracy on the test images."""
        result = train(
            module,
            data,
            replace(settings, seed=self.seed),
            self.folder / where,
            name=f"{stage} of seed {self.seed}",
            weights=weights,
            on_progress=self.steps.within,
        )
        self.steps.ended(result.n_steps)
        self.spent_s[stage] += result.total_s
        return result.test_accuracy


def check_seeds(settings: TrainSettings, n_seeds: int) -> None:
    """Before the first one is trained: that there are some, and that the last is no larger than a seed may be."""
    check_whole("n_seeds", n_seeds, at_least=1)
    replace(settings, seed=settings.seed + n_seeds - 1)
