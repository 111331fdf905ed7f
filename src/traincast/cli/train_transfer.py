"""`traincast train transfer`: a trained network, carried over to other classes."""

from pathlib import Path

import typer

from traincast.api.recipes import plan_transfer
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import planned, train
from traincast.options import catalog as o


def _own(*, picture: o.Picture = None, forecast_only: o.ForecastOnly = False) -> None:
    """Options of the command alone."""


@command(plan_transfer, own=_own)
def transfer(line: CommandLine) -> None:
    """Fine-tune all layers, or train only the last one: which is better, at which rate, and how long does it take?

    Examples: traincast train transfer; traincast train transfer --data flowers/ --model resnet50 --image-side 224
    --weights resnet50.safetensors --seeds 5 --device cuda --on V100-SXM2-16GB
    """
    from traincast.views.train_transfer import class_table, transfer_document

    plan = planned(line, plan_transfer)
    from traincast.recipes.data.picture import write_sample_picture

    images, picture = plan.recipe.data, line.own["picture"]
    if picture is not None:
        write_sample_picture(Path(picture), images.train)
        typer.echo(f"Wrote {picture}", err=True)
    train(line, plan, transfer_document, about=(class_table(images),))
