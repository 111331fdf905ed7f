"""What every recipe of `traincast train` does: forecast, run, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from traincast.api.training import RecipeForecast
    from traincast.recipes.engine.recipe import Progress, Recipe

_INTERRUPTED = 130
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user wants of a recipe, whichever it is."""

    folder: Path
    on: str = "this-machine"
    device: str = "cpu"
    price_usd_per_hour: float | None = None
    forecast_only: bool = False
    as_json: bool = False
    html: Path | None = None
    png: Path | None = None


def forecast_recipe(recipe: Recipe, asked: Asked) -> RecipeForecast | None:
    """Shows the forecast for the place that was asked for, before anything runs; JSON has it at the end.

    Gives the one that the run can be compared with: where that place is elsewhere, this machine's. Gives None where
    nothing but the forecast was asked for: then all is said.
    """
    from traincast.api.training import forecast_stages
    from traincast.cli.show import show
    from traincast.cli.train_document import forecast_document
    from traincast.hardware.host import THIS_MACHINE

    is_here = asked.on == THIS_MACHINE or asked.device != "cpu"  # a GPU that trains here is named by --on
    stages = recipe.stages()
    forecast = forecast_stages(stages, asked.on, is_here=is_here, price_usd_per_hour=asked.price_usd_per_hour)
    document = forecast_document(recipe, forecast)
    if asked.forecast_only:
        show(document, as_json=asked.as_json, html=asked.html, png=asked.png, data={"forecast": forecast.to_dict()})
        return None
    if not asked.as_json:
        show(document)
    return forecast if is_here else forecast_stages(stages, THIS_MACHINE)


def run_recipe(run: Callable[[Path, Progress], Result], name: str, folder: Path) -> Result:
    """`run` of a recipe, with a bar; Ctrl-C leaves a checkpoint and says how to go on."""
    from traincast.cli.counted import counted

    try:
        with counted(f"Training ({name})") as tell:
            return run(folder, tell)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. The same command goes on from the checkpoint in '{folder}'.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
