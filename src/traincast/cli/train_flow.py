"""What every recipe of `traincast train` does: forecast, run, both side by side, and how it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from traincast.options import catalog as o

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.api.recipes import RecipePlan
    from traincast.cli.command import CommandLine
    from traincast.report.document import Document
    from traincast.report.table import Table

_INTERRUPTED = 130


def train_own(*, forecast_only: o.ForecastOnly = False) -> None:
    """The option of the command alone that all of them have."""


def planned(line: CommandLine, plan: Callable[..., RecipePlan[Any]]) -> RecipePlan[Any]:
    """What was asked for; a device that is not here is told before the forecast."""
    with downloading() as tell:
        found = plan(**line.options, on_download=tell)
    if not line.own["forecast_only"]:
        found.check_device()
    return found


def train(
    line: CommandLine,
    plan: RecipePlan[Any],
    document: Callable[[Any, RecipeForecast, Any], Document],
    *,
    about: tuple[Table, ...] = (),
) -> None:
    """The forecast, before anything runs; then the run; then `document` with predicted beside measured.

    `about` are tables of what is trained on, shown with the forecast.
    """
    from traincast.api.recipes import run_recipe
    from traincast.cli.show import show
    from traincast.views.train import forecast_document, with_forecasts

    before = forecast_document(plan.recipe.name, plan.forecast, about)
    if line.own["forecast_only"]:
        line.show(before, plan.to_dict)
        return
    if not line.as_json:
        show(before)
    go_on = f"The same command goes on from the checkpoint in '{plan.folder}'."
    with stopped(go_on), counting(plan.recipe.name) as tell:
        run = run_recipe(plan, on_progress=tell)
    compared = document(plan.recipe, plan.forecast_here, run.result)
    told, page = with_forecasts(compared, plan.forecast, plan.forecast_here)
    line.show(told, run.to_dict, page=page)


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
