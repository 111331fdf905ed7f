"""The runs of the transfer experiment, one after the other, each in a folder of its own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from traincast.errors import TrainingError
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.result import TrainResult
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.train import train, train_on
from traincast.recipes.models import build_model
from traincast.recipes.passes import exact_name
from traincast.recipes.step_count import StepCount
from traincast.recipes.transfer_learning.features import Features, cached_features
from traincast.recipes.transfer_learning.fit import load_trunk
from traincast.recipes.transfer_learning.head import Trunk, freeze_all_but_last, last_layer_name, replace_last_layer
from traincast.recipes.transfer_learning.result import TransferResult, Trial, outcomes_of
from traincast.recipes.transfer_learning.weights import read_weights

if TYPE_CHECKING:
    from traincast.recipes.transfer_learning.recipe import Setting, TransferRecipe

SOURCE, FEATURES = "source", "features"  # names of stages; the others have the names of the approaches


def run_transfer(recipe: TransferRecipe, folder: Path, on_progress: Progress | None = None) -> TransferResult:
    """The source task if there are no weights, then the grid. A run that diverges is noted, and the next one begins."""
    steps = StepCount(sum(stage.n_steps for stage in recipe.stages() if stage.name != FEATURES), on_progress)
    source = _train_source(recipe, folder / "source", steps)
    weights_path = recipe.weights if source is None else source.checkpoint_path
    assert weights_path is not None  # without a path there was a source
    grid = _Grid(recipe, trained_network(recipe, weights_path), folder, steps)
    trials = [grid.trial(setting) for setting in recipe.grid()]
    seconds = {} if source is None else {SOURCE: source.total_s}
    if grid.features is not None:
        seconds[FEATURES] = grid.features.measured_s
    ended = [trial for trial in trials if trial.accuracy is not None]
    for approach in recipe.approaches:
        seconds[approach] = sum(trial.measured_s for trial in ended if trial.approach == approach)
    n_runs = {approach: sum(trial.approach == approach for trial in ended) for approach in recipe.approaches}
    return TransferResult(
        outcomes=outcomes_of(trials),
        stage_seconds=seconds,
        stage_runs={name: n_runs.get(name, 1) for name in seconds},
        n_test_samples=recipe.target.test.n_samples,
        source_accuracy=None if source is None else source.test_accuracy,
    )


def _train_source(recipe: TransferRecipe, folder: Path, steps: StepCount) -> TrainResult | None:
    if recipe.source is None:
        return None
    module = build_model(recipe.model, recipe.source.train.n_classes, seed=recipe.seed)
    result = train(
        module,
        recipe.source,
        recipe.source_settings(),
        folder,
        name=f"{recipe.model} on {recipe.source.name}",
        on_progress=steps.within,
    )
    steps.ended(result.n_steps)
    return result


def trained_network(recipe: TransferRecipe, path: Path) -> nn.Module:
    """The network with the weights of the file everywhere but in its last layer."""
    network = build_model(recipe.model, recipe.target.train.n_classes, seed=recipe.seed)
    load_trunk(network, read_weights(path), model=recipe.model, where=str(path))
    return network


class _Grid:
    """What the runs share: the network they start from, and the features of the cached ones."""

    def __init__(self, recipe: TransferRecipe, trained: nn.Module, folder: Path, steps: StepCount) -> None:
        self.features: Features | None = None
        self._recipe, self._trained, self._folder, self._steps = recipe, trained, folder, steps

    def trial(self, setting: Setting) -> Trial:
        """One run to its end. The time of a run that diverged is not comparable with that of a whole one."""
        try:
            result = self._run(setting)
        except TrainingError:
            result = None
        self._steps.ended(-(-self._recipe.target.train.n_samples // self._recipe.batch_size) * self._recipe.n_epochs)
        return Trial(
            approach=setting.approach,
            learning_rate=setting.learning_rate,
            seed=setting.seed,
            accuracy=None if result is None else result.test_accuracy,
            measured_s=0.0 if result is None else result.total_s,
        )

    def _run(self, setting: Setting) -> TrainResult:
        recipe = self._recipe
        settings = recipe.settings(setting)
        place = self._folder / setting.approach / f"rate-{exact_name(setting.learning_rate)}" / f"seed-{setting.seed}"
        name = f"{setting.approach} of {recipe.model} on {recipe.target.name}, rate {setting.learning_rate:g}"
        network = self._network(setting.seed)
        if setting.approach == "cached":
            features = self._cached(network, settings)
            layer = network.get_submodule(last_layer_name(network))
            return train_on(layer, features.feed(settings), settings, place, name=name, on_progress=self._steps.within)
        module = freeze_all_but_last(network) if setting.approach == "frozen" else network
        return train(module, recipe.target, settings, place, name=name, on_progress=self._steps.within)

    def _network(self, seed: int) -> nn.Module:
        """A copy with a new last layer, the same for all approaches and rates of a seed."""
        network = copy.deepcopy(self._trained)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            replace_last_layer(network, self._recipe.target.train.n_classes)
        return network

    def _cached(self, network: nn.Module, settings: TrainSettings) -> Features:
        """Once for all rates and seeds, which share the batch size, the device and the precision of these settings."""
        if self.features is None:
            path = self._folder / "features.pt"
            self.features = cached_features(Trunk(network), self._recipe.target, settings, path)
        return self.features
