"""Pretraining on noisy tags of a long tail of classes, then a few clean labels: how much noise can it bear?"""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn

from traincast.errors import InputError
from traincast.recipes.data.choose import subset_per_class
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.settings import TrainSettings, settings_like
from traincast.recipes.engine.stages import Stage, train_stage
from traincast.recipes.models import meta_model
from traincast.recipes.passes import exact_name, lengthened, others, repeated, samples_an_epoch
from traincast.recipes.seed_runs import SeedRuns, check_seeds
from traincast.recipes.step_count import StepCount
from traincast.recipes.transfer_learning.head import freeze_all_but_last, replace_last_layer
from traincast.recipes.usual import CLEAN_FRACTION, IMBALANCE, MODEL, NOISE_FRACTIONS, WEAK
from traincast.recipes.weak_labels.resampling import square_root_weights
from traincast.recipes.weak_labels.result import WeakResult, WeakRun, WeakSeed
from traincast.recipes.weak_labels.tags import Tagging, add_noise, check_imbalance, long_tail, tag_images, targets_of

CLEAN, PRETRAINING, FINE_TUNING, PROBE = "clean alone", "pretraining", "fine-tuning", "linear probe"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WeakRecipe:
    """Mahajan et al. (2018). In every stage an epoch is as many samples as the whole training set has.

    A share of the labels is clean; of the other images, a long tail gets tags. `settings` are those of pretraining.
    What it was worth is judged by clean labels, in half the epochs and with a new last layer, as for classes that are
    not the tags: fine-tuned, and by a linear probe (the last layer alone, features fixed).
    """

    data: ImageDataset
    settings: TrainSettings = field(default_factory=partial(settings_like, WEAK))
    model: str = MODEL
    clean_fraction: float = CLEAN_FRACTION
    imbalance: float = IMBALANCE
    tagging: Tagging = field(default_factory=Tagging)
    noise_fractions: tuple[float, ...] = NOISE_FRACTIONS
    n_seeds: int = WEAK.n_seeds

    def __post_init__(self) -> None:
        if not 0 < self.clean_fraction < 1:
            raise InputError(f"The share of clean labels should be above 0 and below 1, not {self.clean_fraction:g}.")
        if not self.noise_fractions or not all(0 <= share <= 1 for share in self.noise_fractions):
            told = ", ".join(f"{share:g}" for share in self.noise_fractions) or "none"
            raise InputError(f"Shares of noise should be between 0 and 1, not {told}.")
        check_imbalance(self.imbalance)
        check_seeds(self.settings, self.n_seeds)

    @property
    def name(self) -> str:
        return "weak"

    def stages(self) -> list[Stage]:
        """Each with all of its runs: every seed, and after the first every share of noise, twice."""
        make_module = partial(meta_model, self.model, self.data.train.n_classes)
        n_runs = self.n_seeds * 2 * len(self.noise_fractions)
        clean = self.clean(self.settings.seed)
        data = self.learns(clean, self.data.train.labels[clean], self.settings.seed)
        return [
            repeated(train_stage(CLEAN, make_module, data, self.clean_settings), self.n_seeds),
            repeated(train_stage(PRETRAINING, make_module, data, self.own_settings), n_runs),
            repeated(train_stage(FINE_TUNING, make_module, data, self.tuning_settings), n_runs),
            repeated(
                train_stage(PROBE, lambda: freeze_all_but_last(make_module()), data, self.tuning_settings), n_runs
            ),
        ]

    def run(self, folder: Path, on_progress: Progress | None = None) -> WeakResult:
        """In folders of its own for every seed and share of noise: what was done once is not done again."""
        steps = StepCount(sum(stage.n_steps for stage in self.stages()), on_progress)
        spent_s: defaultdict[str, float] = defaultdict(float)
        first = self.settings.seed
        seeds = (
            SeedRuns(seed=seed, folder=folder / f"seed-{seed}", steps=steps, spent_s=spent_s)
            for seed in range(first, first + self.n_seeds)
        )
        found = tuple(_Seed(self, runs).run() for runs in seeds)
        return WeakResult(
            model=self.model,
            n_clean=len(self.clean(first)),
            n_tagged=found[0].runs[0].n_images,
            n_test=self.data.test.n_samples,
            seeds=found,
            stage_seconds=dict(spent_s),
        )

    @property
    def own_settings(self) -> TrainSettings:
        """Of pretraining, in epochs of the one length."""
        return replace(self.settings, n_samples=samples_an_epoch(self.data.train.n_samples, self.settings.batch_size))

    @property
    def tuning_settings(self) -> TrainSettings:
        """Of fine-tuning and of the probe. Both have a new last layer, which a lower rate would leave untrained."""
        return replace(self.own_settings, n_epochs=max(1, self.settings.n_epochs // 2))

    @property
    def clean_settings(self) -> TrainSettings:
        """Of the model that has clean labels alone."""
        return replace(self.own_settings, n_epochs=self.settings.n_epochs + self.tuning_settings.n_epochs)

    def clean(self, seed: int) -> Tensor:
        """Numbers of the training images with clean labels."""
        return subset_per_class(self.data.train.labels, share=self.clean_fraction, seed=seed)

    def learns(self, images: Tensor, labels: Tensor, seed: int) -> ImageDataset:
        """The data set with these training images and labels, enough of them for an epoch of the one length."""
        n_samples = samples_an_epoch(self.data.train.n_samples, self.settings.batch_size)
        return lengthened(self.data, images, labels, n_samples=n_samples, seed=seed)


class _Seed:
    """All runs of one seed. More noise keeps the replaced tags of less noise: what differs is the noise alone."""

    def __init__(self, recipe: WeakRecipe, runs: SeedRuns) -> None:
        self._recipe, self._runs = recipe, runs
        self._truth, self._n_classes = recipe.data.train.labels, recipe.data.train.n_classes
        clean = recipe.clean(runs.seed)
        self._clean = recipe.learns(clean, self._truth[clean], runs.seed)
        rest = others(clean, recipe.data.train.n_samples)
        drawn = {"n_classes": self._n_classes, "seed": runs.seed}
        kept = long_tail(self._truth[rest], imbalance=recipe.imbalance, **drawn)
        tags = tag_images(self._truth[rest[kept]], tagging=recipe.tagging, **drawn)
        has_tag = tags.any(1)  # the others would not have been found
        self._tagged, self._tags = rest[kept][has_tag], tags[has_tag]

    def run(self) -> WeakSeed:
        recipe, runs = self._recipe, self._runs
        alone = runs.build(recipe.model, self._n_classes)
        accuracy = runs.train(alone, self._clean, recipe.clean_settings, where="clean-alone", stage=CLEAN)
        found = [self._weak(noise, drawn) for drawn, noise in product((False, True), recipe.noise_fractions)]
        return WeakSeed(seed=runs.seed, clean_accuracy=accuracy, runs=tuple(found))

    def _weak(self, noise: float, is_resampled: bool) -> WeakRun:
        recipe, runs = self._recipe, self._runs
        tags = add_noise(self._tags, noise, seed=runs.seed)
        data = recipe.learns(self._tagged, targets_of(tags), runs.seed)
        weights = square_root_weights(data.train.labels > 0) if is_resampled else None
        where = f"noise-{exact_name(noise)}-{'square-root' if is_resampled else 'as-is'}"
        module = runs.build(recipe.model, self._n_classes)
        runs.train(module, data, recipe.own_settings, where=f"{where}/pretraining", stage=PRETRAINING, weights=weights)
        tuned, probe = self._with_new_head(module), freeze_all_but_last(self._with_new_head(module))
        clean, settings = self._clean, recipe.tuning_settings
        return WeakRun(
            noise_fraction=noise,
            is_resampled=is_resampled,
            n_images=len(tags),
            right_fraction=float(tags[torch.arange(len(tags)), self._truth[self._tagged]].float().mean()),
            fine_tuned_accuracy=runs.train(tuned, clean, settings, where=f"{where}/fine-tuning", stage=FINE_TUNING),
            probe_accuracy=runs.train(probe, clean, settings, where=f"{where}/linear-probe", stage=PROBE),
        )

    def _with_new_head(self, module: nn.Module) -> nn.Module:
        fresh = copy.deepcopy(module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._runs.seed)
            replace_last_layer(fresh, self._n_classes)
        return fresh
