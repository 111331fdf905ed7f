"""What the pages of recipes share: tables in Markdown, a forecast beside its run, and how a page is renewed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.api.recipe_forecast import forecast_stages
from traincast.recipes.engine.recipe import Recipe, RecipeResult
from traincast.report.chart import Chart
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.report.table import Table
from traincast.views.train import comparison_table

DOCS = Path(__file__).parents[1] / "docs"


def markdown(table: Table) -> str:
    """Numbers to the right, and no columns that are empty everywhere."""
    cells = table.formatted()
    kept = [place for place in range(len(table.columns)) if any(row[place] not in ("", "-") for row in cells)]
    header = [table.columns[place].header or " " for place in kept]
    marks = ["---:" if table.columns[place].is_numeric else "---" for place in kept]
    lines = [header, marks, *([row[place] for place in kept] for row in cells)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def timed(recipe: Recipe[RecipeResult], folder: Path) -> str:
    """The recipe on this machine: forecast, run, and both side by side; and how busy the machine was."""
    forecast = forecast_stages(recipe.stages())
    load = os.getloadavg()[0]
    result = recipe.run(folder)
    table = markdown(comparison_table(forecast, result.stage_seconds))
    return f"{table}\n\nOn {forecast.place}, {torch.get_num_threads()} threads, a load of {load:.1f} when it began."


def write_page(page: Path, tables: Mapping[str, str], charts: Mapping[str, Chart]) -> None:
    """Between the marks of the page; images beside the others."""
    write_file(page, refresh(page.read_text(encoding="utf-8"), tables))
    for name, chart in charts.items():
        write_file(DOCS / "images" / f"{name}.png", to_png(chart))
