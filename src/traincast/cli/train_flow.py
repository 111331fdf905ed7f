"""What every recipe of `traincast train` does: forecast, run, both side by side, and how it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from traincast.api.training import RecipeForecast
    from traincast.cli.train_asked import Asked
    from traincast.recipes.engine.recipe import Recipe, RecipeResult
    from traincast.report.document import Document
    from traincast.report.table import Table

_INTERRUPTED = 130
Result = TypeVar("Result", bound="RecipeResult")


@dataclass(frozen=True, eq=False, slots=True)
class Forecasts:
    """For the place that was asked about, and what the run is compared with: another one where that is elsewhere."""

    asked: RecipeForecast
    here: RecipeForecast

    def to_dict(self) -> dict[str, Any]:
        """What JSON has of them."""
        told = {"forecast": self.asked.to_dict()}
        return told if self.asked is self.here else {**told, "forecast_here": self.here.to_dict()}

    def beside(self, document: Document) -> Document:
        """The document, with the forecast for elsewhere, if there is one."""
        return document if self.asked is self.here else _with_forecast(document, self.asked)

    def on_page(self, document: Document) -> Document:
        """With every forecast, its cost and its warnings: a terminal has shown them before the run, a page has not."""
        return self.beside(_with_forecast(document, self.here))


def _with_forecast(document: Document, forecast: RecipeForecast) -> Document:
    from traincast.views.train import forecast_notes, forecast_table

    table = replace(forecast_table(forecast), title=f"Forecast for {forecast.place}")
    notes = tuple(f"{forecast.place}: {note}" for note in forecast_notes(forecast))
    return replace(document, tables=(*document.tables, table), notes=(*document.notes, *notes))


def run_command(
    recipe: Recipe[Result],
    asked: Asked,
    folder: Path,
    document: Callable[[RecipeForecast, Result], Document],
    *,
    about: tuple[Table, ...] = (),
) -> None:
    """The forecast, before anything runs; then the run; then `document` with predicted beside measured.

    `about` are tables of what is trained on, shown with the forecast.
    """
    from traincast.api.run_memory import check_memory
    from traincast.cli.show import show
    from traincast.recipes.engine.settings import check_device
    from traincast.views.train import forecast_document

    if not asked.forecast_only:
        check_device(asked.device)
    forecasts = _forecasts(recipe, asked)
    before = forecast_document(recipe.name, forecasts.asked, about)
    if asked.forecast_only:
        asked.show(before, {"forecast": forecasts.asked.to_dict()})
        return
    if not asked.as_json:
        show(before)
    check_memory(forecasts.here)
    with stopped(f"The same command goes on from the checkpoint in '{folder}'."), counting(recipe.name) as tell:
        result = recipe.run(folder, tell)
    answer = {**forecasts.to_dict(), "result": result.to_dict()}
    compared = document(forecasts.here, result)
    asked.show(forecasts.beside(compared), answer, forecasts.on_page(compared))


def _forecasts(recipe: Recipe[Result], asked: Asked) -> Forecasts:
    from traincast.api.training import forecast_stages

    stages = recipe.stages()
    forecast = forecast_stages(stages, asked.on, is_here=asked.is_here, price_usd_per_hour=asked.price)
    is_enough = asked.is_here or asked.forecast_only
    return Forecasts(forecast, forecast if is_enough else forecast_stages(stages))


@contextlib.contextmanager
def counting(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over the steps, or the runs, of a recipe."""
    from traincast.cli.counted import counted

    with counted(f"Training ({name})") as tell:
        yield tell


@contextlib.contextmanager
def stopped(how_to_go_on: str) -> Iterator[None]:
    """Ctrl-C ends the command in good order, and says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Stopped. {how_to_go_on}", err=True)
        raise typer.Exit(_INTERRUPTED) from None


@contextlib.contextmanager
def downloading() -> Iterator[Callable[[int, int | None], None]]:
    """A bar over the bytes of a file; none where the server does not tell how many there are."""
    from traincast.cli.counted import counted

    with counted("Downloading, bytes") as tell:
        yield lambda n_done, n_all: tell(n_done, n_all) if n_all else None
