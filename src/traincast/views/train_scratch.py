"""What `traincast train scratch` shows: the accuracy, predicted beside measured time, and the learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.scratch import ScratchRecipe, ScratchResult


def scratch_document(recipe: ScratchRecipe, forecast: RecipeForecast, scratch: ScratchResult) -> Document:
    """After the run."""
    from traincast.views.train import curve_charts, parts_table, times_chart

    result = scratch.training
    columns = columns_of(
        "test_accuracy_fraction: test accuracy, best_test_accuracy_fraction: best, "
        "test_loss: test loss as ratio, final_loss: last batch's loss as ratio, n_steps: steps"
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
