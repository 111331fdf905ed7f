"""Recipes that train for real: planned from options, forecast, and then run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from traincast.api.recipe_forecast import forecast_stages, forecasts_to_dict
from traincast.api.runnables import require_torch
from traincast.hardware.host import THIS_MACHINE
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.recipes.usual import (
    ADDED_FRACTION,
    CLEAN_FRACTION,
    DATA,
    DROPPED_FRACTION,
    IMBALANCE,
    LABELED_FRACTION,
    MODEL,
    N_SOURCE_EPOCHS,
    NOISE_FRACTIONS,
    P_VALUES,
    SCRATCH,
    TEACHER,
    TEACHER_STUDENT,
    TRANSFER,
    WEAK,
)

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.data.images import ImageDataset
    from traincast.recipes.engine.recipe import Recipe, RecipeResult
    from traincast.recipes.engine.stages import Stage
    from traincast.recipes.scratch import ScratchRecipe
    from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe
    from traincast.recipes.transfer_learning.recipe import TransferRecipe
    from traincast.recipes.weak_labels.recipe import WeakRecipe

AnyRecipe = TypeVar("AnyRecipe", bound="Recipe[RecipeResult]")


@dataclass(frozen=True, eq=False, kw_only=True)
class RecipePlan(Generic[AnyRecipe]):
    """A recipe with its data, and the folder where it is going to run. It is forecast when that is first asked for."""

    recipe: AnyRecipe
    folder: Path
    on: str  # what the forecast is for
    device: str  # what it is trained on
    price_usd_per_hour: float | None

    @property
    def is_here(self) -> bool:
        """Whether the forecast is for what is going to train. A GPU that trains here is named by `on`."""
        return self.on == THIS_MACHINE or self.device != "cpu"

    @cached_property
    def _stages(self) -> list[Stage]:
        return self.recipe.stages()

    @cached_property
    def forecast(self) -> RecipeForecast:
        """On the place that was asked about."""
        return forecast_stages(self._stages, self.on, is_here=self.is_here, price_usd_per_hour=self.price_usd_per_hour)

    @cached_property
    def forecast_here(self) -> RecipeForecast:
        """What the run is compared with."""
        return self.forecast if self.is_here else forecast_stages(self._stages)

    def check_device(self) -> None:
        """Raises where torch cannot train on the device."""
        from traincast.recipes.engine.settings import check_device

        check_device(self.device)

    def to_dict(self) -> dict[str, Any]:
        """What --forecast-only --json prints."""
        return {"forecast": self.forecast.to_dict()}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RecipeRun:
    """What came of a plan: the result is that of its recipe."""

    plan: RecipePlan[Any]
    result: Any

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        told = forecasts_to_dict(self.plan.forecast, self.plan.forecast_here)
        return {**told, "result": self.result.to_dict()}


def run_recipe(plan: RecipePlan[Any], *, on_progress: Callable[[int, int], None] | None = None) -> RecipeRun:
    """Train what was planned, in its folder. What was done there before is not done again."""
    from traincast.api.run_memory import check_memory

    plan.check_device()
    check_memory(plan.forecast_here)
    return RecipeRun(plan=plan, result=plan.recipe.run(plan.folder, on_progress))


def folder_of(out: str | Path | None, *parts: object) -> Path:
    """The folder that was asked for, or runs/ and what tells the run from others; a path counts by its last name."""
    if out is not None:
        return Path(out)
    names = [re.sub(r"[^A-Za-z0-9_.]+", "-", Path(str(part)).name or str(part)) for part in parts]
    return Path("runs") / "-".join(names)


@question
def plan_scratch(
    data: o.Data = DATA,
    *,
    model: o.TrainedModel = MODEL,
    n_epochs: o.TrainEpochs = SCRATCH.n_epochs,
    batch_size: o.BatchOfStep = SCRATCH.batch_size,
    learning_rate: o.LearningRate = SCRATCH.learning_rate,
    optimizer: o.TrainOptimizer = SCRATCH.optimizer,
    weight_decay: o.WeightDecay = SCRATCH.weight_decay,
    augment: o.Augment = True,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.RecipeOptions],
) -> RecipePlan[ScratchRecipe]:
    """A network that is trained from its first weights."""
    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.scratch import ScratchRecipe

    settings = settings_like(
        SCRATCH,
        n_epochs=n_epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        augmentation="usual" if augment else None,
        **_training(shared),
    )
    recipe = ScratchRecipe(model=model, data=_images(data, shared, on_download), settings=settings)
    return _plan(recipe, shared, "scratch", model, data)


@question
def plan_transfer(
    data: o.Data = DATA,
    *,
    model: o.TrainedModel = MODEL,
    weights: o.Weights = None,
    approaches: o.Approaches = None,
    rates: o.RatesToTry = None,
    n_epochs: o.TrainEpochs = TRANSFER.n_epochs,
    n_source_epochs: o.SourceEpochs = N_SOURCE_EPOCHS,
    batch_size: o.BatchOfStep = TRANSFER.batch_size,
    n_seeds: o.Seeds = TRANSFER.n_seeds,
    augment: o.Augment = True,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.RecipeOptions],
) -> RecipePlan[TransferRecipe]:
    """A trained network, carried over to other classes by several approaches, each at several learning rates."""
    require_torch("Training", extra="recipes")
    from traincast.recipes.transfer_learning.recipe import APPROACHES, TransferRecipe

    recipe = TransferRecipe(
        model=model,
        data=_images(data, shared, on_download),
        weights=None if weights is None else Path(weights),
        approaches=tuple(APPROACHES if approaches is None else approaches),
        rates=None if rates is None else tuple(rates),
        n_epochs=n_epochs,
        n_source_epochs=n_source_epochs,
        batch_size=batch_size,
        n_seeds=n_seeds,
        augmentation="usual" if augment else None,
        **_training(shared),
    )
    recipe.check_weights()
    return _plan(recipe, shared, "transfer", model, data)


@question
def plan_teacher_student(
    data: o.Data = DATA,
    *,
    teacher: o.Teacher = TEACHER,
    student: o.Student = MODEL,
    labeled_fraction: o.Labeled = LABELED_FRACTION,
    k_values: o.KValues = None,
    p_values: o.PValues = P_VALUES,
    n_epochs: o.PretrainingEpochs = TEACHER_STUDENT.n_epochs,
    batch_size: o.BatchOfStep = TEACHER_STUDENT.batch_size,
    learning_rate: o.LearningRate = TEACHER_STUDENT.learning_rate,
    n_seeds: o.Seeds = TEACHER_STUDENT.n_seeds,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.RecipeOptions],
) -> RecipePlan[TeacherStudentRecipe]:
    """A student that is pretrained on what its teacher selects among images without labels."""
    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe

    settings = settings_like(
        TEACHER_STUDENT, n_epochs=n_epochs, batch_size=batch_size, learning_rate=learning_rate, **_training(shared)
    )
    recipe = TeacherStudentRecipe(
        data=_images(data, shared, on_download),
        settings=settings,
        teacher=teacher,
        student=student,
        labeled_fraction=labeled_fraction,
        k_values=None if k_values is None else tuple(sorted(set(k_values))),
        p_values=tuple(sorted(set(p_values))),
        n_seeds=n_seeds,
    )
    return _plan(recipe, shared, "teacher-student", teacher, student, data)


@question
def plan_weak(
    data: o.Data = DATA,
    *,
    model: o.TrainedModel = MODEL,
    clean_fraction: o.Clean = CLEAN_FRACTION,
    noise_fractions: o.Noise = NOISE_FRACTIONS,
    imbalance: o.Imbalance = IMBALANCE,
    dropped_fraction: o.Dropped = DROPPED_FRACTION,
    added_fraction: o.Added = ADDED_FRACTION,
    n_epochs: o.PretrainingEpochs = WEAK.n_epochs,
    batch_size: o.BatchOfStep = WEAK.batch_size,
    learning_rate: o.LearningRate = WEAK.learning_rate,
    n_seeds: o.Seeds = WEAK.n_seeds,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.RecipeOptions],
) -> RecipePlan[WeakRecipe]:
    """Pretraining on noisy tags, and then a few clean labels."""
    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.weak_labels.recipe import WeakRecipe
    from traincast.recipes.weak_labels.tags import Tagging

    settings = settings_like(
        WEAK, n_epochs=n_epochs, batch_size=batch_size, learning_rate=learning_rate, **_training(shared)
    )
    recipe = WeakRecipe(
        data=_images(data, shared, on_download),
        settings=settings,
        model=model,
        clean_fraction=clean_fraction,
        imbalance=imbalance,
        tagging=Tagging(dropped_fraction=dropped_fraction, added_fraction=added_fraction),
        noise_fractions=tuple(sorted(set(noise_fractions))),
        n_seeds=n_seeds,
    )
    return _plan(recipe, shared, "weak", model, data)


def _training(shared: o.RecipeOptions) -> dict[str, Any]:
    """What all settings of a training take over."""
    return {
        "seed": shared["seed"],
        "device": shared["device"],
        "precision": shared["precision"],
        "checkpoint_s": shared["checkpoint_s"],
    }


def _images(
    data: str | Path, shared: o.RecipeOptions, on_download: Callable[[int, int | None], None] | None
) -> ImageDataset:
    from traincast.recipes.data.load import load_dataset

    side, download = shared["image_side"], shared["download"]
    return load_dataset(str(data), image_side=side, download=download, on_progress=on_download)


def _plan(recipe: AnyRecipe, shared: o.RecipeOptions, *parts: object) -> RecipePlan[AnyRecipe]:
    return RecipePlan(
        recipe=recipe,
        folder=folder_of(shared["out"], *parts),
        on=shared["on"],
        device=shared["device"],
        price_usd_per_hour=shared["price_usd_per_hour"],
    )
