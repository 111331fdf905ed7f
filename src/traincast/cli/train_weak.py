"""`traincast train weak`: pretraining on noisy tags."""

from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    BatchSize,
    Data,
    Download,
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


def weak(
    data: Data = "digits",
    model: ModelName = "cifar_resnet20",
    clean: Annotated[str, typer.Option(metavar="SHARE", help="Labels that are clean: 5% or 0.05.")] = "5%",
    noise: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARE", help="Tags replaced; again for more.", show_default="0, 10%, 25%, 50%"),
    ] = None,
    imbalance: Annotated[float, typer.Option(help="Images of the commonest class over those of the rarest.")] = 10.0,
    dropped: Annotated[str, typer.Option(metavar="SHARE", help="Images that lack their true tag.")] = "10%",
    added: Annotated[str, typer.Option(metavar="SHARE", help="Images that have a tag of another class.")] = "30%",
    epochs: Annotated[int, typer.Option(help="Of pretraining, each as long as the training set.")] = 3,
    batch_size: BatchSize = 32,
    learning_rate: LearningRate = 0.03,
    seeds: Annotated[int, typer.Option(help="Runs of everything, each with labels and tags of its own.")] = 5,
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
    """How much noise in its tags does pretraining bear, and does square-root resampling help?

    Examples: traincast train weak; traincast train weak --noise 0 --noise 25% --imbalance 50 --seeds 3
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.fractions import fraction_of
    from traincast.cli.show import show
    from traincast.cli.train_flow import Asked, forecast_recipe, run_recipe
    from traincast.cli.train_weak_document import weak_document

    require_torch("Training")
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.engine.settings import TrainSettings
    from traincast.recipes.scratch import usual_augmentation
    from traincast.recipes.weak_labels.recipe import NOISE_FRACTIONS, WeakRecipe
    from traincast.recipes.weak_labels.tags import Tagging

    images = load_dataset(data, image_side=image_side, download=download)
    shares = sorted({fraction_of(each, "--noise") for each in noise}) if noise else NOISE_FRACTIONS
    recipe = WeakRecipe(
        data=images,
        settings=TrainSettings(
            n_epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=1e-4,
            seed=seed,
            device=device,
            precision=precision,
            augmentation=usual_augmentation(images),
        ),
        model=model,
        clean_fraction=fraction_of(clean, "--clean"),
        imbalance=imbalance,
        tagging=Tagging(
            dropped_fraction=fraction_of(dropped, "--dropped"), added_fraction=fraction_of(added, "--added")
        ),
        noise_fractions=tuple(shares),
        n_seeds=seeds,
    )
    folder = out_folder(out, "weak", model, data)
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
    result = run_recipe(recipe.run, recipe.name, folder)
    answer = {"forecast": forecast.to_dict(), "result": result.to_dict()}
    show(weak_document(recipe, forecast, result), as_json=as_json, html=html, png=png, data=answer)
