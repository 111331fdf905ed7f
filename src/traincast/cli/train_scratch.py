"""`traincast train scratch`: a network from its first weights."""

from typing import TYPE_CHECKING

from traincast.cli.train_asked import Asked, recipe_command
from traincast.cli.train_options import (
    Augment,
    BatchSize,
    Epochs,
    LearningRate,
    ModelName,
    TrainOptimizer,
    WeightDecay,
)
from traincast.recipes.usual import MODEL, SCRATCH

if TYPE_CHECKING:
    from traincast.api.training import RecipeForecast
    from traincast.recipes.engine.result import TrainResult
    from traincast.recipes.scratch import ScratchRecipe
    from traincast.report.document import Document


@recipe_command
def scratch(
    asked: Asked,
    model: ModelName = MODEL,
    epochs: Epochs = SCRATCH.n_epochs,
    batch_size: BatchSize = SCRATCH.batch_size,
    learning_rate: LearningRate = SCRATCH.learning_rate,
    optimizer: TrainOptimizer = SCRATCH.optimizer,
    weight_decay: WeightDecay = SCRATCH.weight_decay,
    augment: Augment = True,
) -> None:
    """Train a network from scratch. The same command again goes on where it was broken off.

    Examples: traincast train scratch; traincast train scratch --data cifar10 --download --model cifar_resnet56
    --epochs 100 --device cuda --on T4
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.train_flow import run_command

    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.scratch import ScratchRecipe

    settings = settings_like(
        SCRATCH,
        n_epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        augmentation="usual" if augment else None,
        **asked.training,
    )
    recipe = ScratchRecipe(model=model, data=asked.images(), settings=settings)
    folder = asked.folder("scratch", model)
    run_command(recipe, asked, folder, lambda forecast, result: _document(recipe, forecast, result.training))


def _document(recipe: "ScratchRecipe", forecast: "RecipeForecast", result: "TrainResult") -> "Document":
    from traincast.report.document import Document
    from traincast.report.table import Column, Table
    from traincast.units import show_things
    from traincast.views.train import curve_charts, parts_table, times_chart

    columns = (
        Column(key="test_accuracy_fraction", header="test accuracy", show="percent"),
        Column(key="best_test_accuracy_fraction", header="best", show="percent"),
        Column(key="test_loss", header="test loss", show="ratio"),
        Column(key="final_loss", header="last batch's loss", show="ratio"),
        Column(key="n_steps", header="steps", show="integer"),
    )
    numbers = (result.test_accuracy, result.best_test_accuracy, result.test_loss, result.final_loss, result.n_steps)
    notes = [*recipe.data.notes, f"The log is '{result.log_path}': traincast converge reads it."]
    if result.resumed_at_step is not None:
        notes.append(f"It went on from step {result.resumed_at_step:,}; times are of all its parts.")
    expected, epochs = forecast.stages[0], show_things(recipe.settings.n_epochs, "epoch")
    parts: list[tuple[str, float | None, float | None]] = [
        ("training", expected.train_s, result.train_s),
        ("input", expected.input_s, result.input_s),
        ("evaluation", expected.evaluate_s, result.evaluate_s),
    ]
    return Document(
        title=f"{recipe.model} on {recipe.data.name}: {100 * result.test_accuracy:.1f} % of the test images are right",
        subtitle=f"{epochs} of {recipe.data.train.n_samples:,} images, from scratch",
        tables=(Table(title="Result", columns=columns, rows=(numbers,)), parts_table(expected, result)),
        charts=(*curve_charts(result), times_chart(parts, "part")),
        notes=tuple(notes),
    )
