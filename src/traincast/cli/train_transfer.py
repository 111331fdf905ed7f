"""`traincast train transfer`: a trained network, carried over to other classes."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.train_asked import Asked, recipe_command
from traincast.cli.train_options import Augment, BatchSize, Epochs, ModelName
from traincast.recipes.usual import MODEL, N_SOURCE_EPOCHS, TRANSFER


@recipe_command
def transfer(
    asked: Asked,
    model: ModelName = MODEL,
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
    epochs: Epochs = TRANSFER.n_epochs,
    source_epochs: Annotated[int, typer.Option(help="Passes over the first half of the classes.")] = N_SOURCE_EPOCHS,
    batch_size: BatchSize = TRANSFER.batch_size,
    seeds: Annotated[int, typer.Option(help="Runs of every approach and rate.")] = TRANSFER.n_seeds,
    augment: Augment = True,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a PNG with images of every class, and how many it has.")
    ] = None,
) -> None:
    """Fine-tune all layers, or teach the last one alone: which is better, at which rate, and how long does it take?

    Examples: traincast train transfer; traincast train transfer --data flowers/ --model resnet50 --image-side 224
    --weights resnet50.safetensors --seeds 5 --device cuda --on V100-SXM2-16GB
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.train_flow import run_command
    from traincast.views.train_transfer import transfer_document

    require_torch("Training", extra="recipes")
    from traincast.recipes.data.picture import class_table, write_sample_picture
    from traincast.recipes.transfer.recipe import APPROACHES, TransferRecipe

    images = asked.images()
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
        augmentation="usual" if augment else None,
        **asked.training,
    )
    recipe.check_weights()
    if picture is not None:
        write_sample_picture(picture, images.train)
        typer.echo(f"Wrote {picture}", err=True)
    run_command(
        recipe,
        asked,
        asked.folder("transfer", model),
        lambda forecast, result: transfer_document(recipe, forecast, result),
        about=(class_table(images),),
    )
