"""`traincast train transfer`: a trained network, carried over to other classes."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    BatchSize,
    Data,
    Download,
    Epochs,
    ForecastOnly,
    ImageSide,
    ModelName,
    On,
    Out,
    Price,
    Seed,
    TrainDevice,
    TrainPrecision,
    out_folder,
)


def transfer(
    data: Data = "digits",
    model: ModelName = "cifar_resnet20",
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of a trained network. Default: half of the classes is learned first."),
    ] = None,
    approach: Annotated[
        list[str] | None,
        typer.Option(help="fine-tune, frozen or cached; again for more. Default: all.", show_default=False),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Learning rate; again for more. Default: 1 (not fine-tune), 0.1, 0.01, 0.001."),
    ] = None,
    epochs: Epochs = 10,
    source_epochs: Annotated[int, typer.Option(help="Passes over the first half of the classes.")] = 10,
    batch_size: BatchSize = 64,
    seeds: Annotated[int, typer.Option(help="Runs of every approach and rate.")] = 3,
    seed: Seed = 0,
    augment: Annotated[bool, typer.Option(help="Random crops, and mirror images but of digits.")] = True,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a PNG with images of every class, and how many it has.")
    ] = None,
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
    """Fine-tune all layers, or teach the last one alone: which is better, at which rate, and how long does it take?

    Examples: traincast train transfer; traincast train transfer --data flowers/ --model resnet50 --image-side 224
    --weights resnet50.safetensors --seeds 5 --device cuda --on V100-SXM2-16GB
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.show import show
    from traincast.cli.train_flow import Asked, forecast_recipe, run_recipe
    from traincast.cli.train_transfer_document import transfer_document

    require_torch("Training")
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.data.picture import write_sample_picture
    from traincast.recipes.scratch import usual_augmentation
    from traincast.recipes.transfer.recipe import APPROACHES, TransferRecipe

    images = load_dataset(data, image_side=image_side, download=download)
    recipe = TransferRecipe(
        model=model,
        data=images,
        weights=weights,
        approaches=tuple(approach or APPROACHES),
        rates=tuple(rate) if rate else None,
        n_epochs=epochs,
        n_source_epochs=source_epochs,
        batch_size=batch_size,
        n_seeds=seeds,
        seed=seed,
        augmentation=usual_augmentation(images) if augment else None,
        device=device,
        precision=precision,
    )
    recipe.check_weights()
    if picture is not None:
        write_sample_picture(picture, images.train)
        typer.echo(f"Wrote {picture}", err=True)
    folder = out_folder(out, "transfer", model, data)
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
    show(transfer_document(recipe, forecast, result), as_json=as_json, html=html, png=png, data=answer)
