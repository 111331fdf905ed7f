"""`traincast train scratch`: a network from its first weights."""

from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    BatchSize,
    Data,
    Download,
    Epochs,
    ForecastOnly,
    ImageSide,
    LearningRate,
    ModelName,
    On,
    Out,
    Price,
    Seed,
    TrainDevice,
    TrainPrecision,
    out_folder,
)

if TYPE_CHECKING:
    from traincast.api.training import RecipeForecast
    from traincast.recipes.engine.result import TrainResult
    from traincast.recipes.scratch import ScratchRecipe
    from traincast.report.document import Document


def scratch(
    data: Data = "digits",
    model: ModelName = "cifar_resnet20",
    epochs: Epochs = 10,
    batch_size: BatchSize = 128,
    learning_rate: LearningRate = 0.1,
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, nesterov, adam, adamw, ...")] = "momentum",
    weight_decay: Annotated[float, typer.Option(help="How much weights shrink, as a share of the rate.")] = 1e-4,
    augment: Annotated[bool, typer.Option(help="Random crops, and mirror images but of digits.")] = True,
    seed: Seed = 0,
    out: Out = None,
    image_side: ImageSide = None,
    download: Download = False,
    on: On = "this-machine",
    device: TrainDevice = "cpu",
    precision: TrainPrecision = "fp32",
    price: Price = None,
    forecast_only: ForecastOnly = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Train a network from scratch. The same command again goes on where it was broken off.

    Examples: traincast train scratch; traincast train scratch --data cifar10 --download --model cifar_resnet56
    --epochs 100 --device cuda --on T4
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.show import show
    from traincast.cli.train_flow import Asked, forecast_recipe, run_recipe

    require_torch("Training")
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.engine.settings import TrainSettings
    from traincast.recipes.scratch import ScratchRecipe, usual_augmentation

    images = load_dataset(data, image_side=image_side, download=download)
    settings = TrainSettings(
        n_epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        seed=seed,
        device=device,
        precision=precision,
        augmentation=usual_augmentation(images) if augment else None,
    )
    recipe = ScratchRecipe(model=model, data=images, settings=settings)
    folder = out_folder(out, "scratch", model, data)
    asked = Asked(
        folder=folder,
        on=on,
        device=device,
        price_usd_per_hour=price,
        forecast_only=forecast_only,
        as_json=as_json,
        html=html,
        png=png,
    )
    forecast = forecast_recipe(recipe, asked)
    if forecast is None:
        return
    result = run_recipe(recipe.run, recipe.name, folder).training
    answer = {"forecast": forecast.to_dict(), "result": result.to_dict()}
    show(_document(recipe, forecast, result), as_json=as_json, html=html, png=png, data=answer)


def _document(recipe: "ScratchRecipe", forecast: "RecipeForecast", result: "TrainResult") -> "Document":
    from traincast.cli.train_document import curve_charts, parts_table, times_chart
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

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
    expected = forecast.stages[0]
    parts: list[tuple[str, float | None, float | None]] = [
        ("training", expected.train_s, result.train_s),
        ("input", expected.input_s, result.input_s),
        ("evaluation", expected.evaluate_s, result.evaluate_s),
    ]
    return Document(
        title=f"{recipe.model} on {recipe.data.name}: {100 * result.test_accuracy:.1f} % of the test images are right",
        subtitle=f"{recipe.settings.n_epochs} epochs of {recipe.data.train.n_samples:,} images, from scratch",
        tables=(Table(title="Result", columns=columns, rows=(numbers,)), parts_table(expected, result)),
        charts=(*curve_charts(result), times_chart(parts, "part")),
        notes=tuple(notes),
    )
