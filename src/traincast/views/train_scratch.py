"""What `traincast train scratch` shows: the accuracy, predicted beside measured time, and the learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.api.training import RecipeForecast
    from traincast.recipes.scratch import ScratchRecipe, ScratchResult


def scratch_document(recipe: ScratchRecipe, forecast: RecipeForecast, scratch: ScratchResult) -> Document:
    """After the run."""
    from traincast.views.train import curve_charts, parts_table, times_chart

    result = scratch.training
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
        notes.append(f"Resumed from step {result.resumed_at_step:,}; times include the earlier parts.")
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
