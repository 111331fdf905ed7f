"""`traincast train weak`: pretraining on noisy tags."""

from typing import Annotated

import typer

from traincast.cli.train_asked import Asked, recipe_command
from traincast.cli.train_options import BatchSize, LearningRate, ModelName
from traincast.recipes.usual import (
    ADDED_FRACTION,
    CLEAN_FRACTION,
    DROPPED_FRACTION,
    IMBALANCE,
    MODEL,
    NOISE_FRACTIONS,
    WEAK,
)


@recipe_command
def weak(
    asked: Asked,
    model: ModelName = MODEL,
    clean: Annotated[
        str, typer.Option(metavar="SHARE", help="Labels that are clean: 5% or 0.05.")
    ] = f"{CLEAN_FRACTION:.0%}",
    noise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE",
            help="Tags replaced; again for more.",
            show_default=", ".join(f"{share:.0%}" for share in NOISE_FRACTIONS),
        ),
    ] = None,
    imbalance: Annotated[
        float, typer.Option(help="Images of the commonest class over those of the rarest.")
    ] = IMBALANCE,
    dropped: Annotated[
        str, typer.Option(metavar="SHARE", help="Images that lack their true tag.")
    ] = f"{DROPPED_FRACTION:.0%}",
    added: Annotated[
        str, typer.Option(metavar="SHARE", help="Images that have a tag of another class.")
    ] = f"{ADDED_FRACTION:.0%}",
    epochs: Annotated[int, typer.Option(help="Of pretraining, each as long as the training set.")] = WEAK.n_epochs,
    batch_size: BatchSize = WEAK.batch_size,
    learning_rate: LearningRate = WEAK.learning_rate,
    seeds: Annotated[
        int, typer.Option(help="Runs of everything, each with labels and tags of its own.")
    ] = WEAK.n_seeds,
) -> None:
    """How much noise in its tags does pretraining bear, and does square-root resampling help?

    Examples: traincast train weak; traincast train weak --noise 0 --noise 25% --imbalance 50 --seeds 3
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.train_flow import run_command
    from traincast.options.typed import SHARE
    from traincast.views.train_weak import weak_document

    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.weak_labels.recipe import WeakRecipe
    from traincast.recipes.weak_labels.tags import Tagging

    shares = sorted({SHARE.of(each, "--noise") for each in noise}) if noise else NOISE_FRACTIONS
    recipe = WeakRecipe(
        data=asked.images(),
        settings=settings_like(
            WEAK, n_epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, **asked.training
        ),
        model=model,
        clean_fraction=SHARE.of(clean, "--clean"),
        imbalance=imbalance,
        tagging=Tagging(dropped_fraction=SHARE.of(dropped, "--dropped"), added_fraction=SHARE.of(added, "--added")),
        noise_fractions=tuple(shares),
        n_seeds=seeds,
    )
    folder = asked.folder("weak", model)
    run_command(recipe, asked, folder, lambda forecast, result: weak_document(recipe, forecast, result))
