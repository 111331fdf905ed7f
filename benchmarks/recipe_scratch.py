"""How right is the forecast that `traincast train scratch` prints?  python benchmarks/recipe_scratch.py [--write]

Trains networks from scratch on the digits, each after its forecast, on a calibrated machine (`traincast calibrate`)
that should have nothing else to do; without weight decay, unlike the command. Takes about two minutes. --write renews
the table of docs/recipes.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch

from recipe_page import DOCS, write_page
from traincast.api.recipe_forecast import forecast_stages
from traincast.recipes.data.load import load_dataset
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.scratch import ScratchRecipe

PAGE = DOCS / "recipes.md"
RUNS = (  # model, batch size, epochs, side of the images
    ("cifar_resnet20", 128, 3, 16),
    ("cifar_resnet20", 32, 3, 16),
    ("cifar_resnet20", 128, 3, 32),
    ("cifar_resnet32", 64, 3, 16),
    ("cifar_resnet56", 128, 2, 16),
    ("cifar_resnet18", 128, 2, 16),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    given = parser.parse_args()
    lines = [
        "| model | batch | images | epochs | forecast | p10 to p90 | took | forecast / took | test accuracy |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    place, ratios, load = "", [], os.getloadavg()[0]
    for model, batch_size, n_epochs, side in RUNS:
        line, place, ratio = timed(model, batch_size, n_epochs, side)
        print(line, flush=True)
        lines.append(line)
        ratios.append(ratio)
    close = sum(abs(ratio - 1) <= 0.2 for ratio in ratios)
    words = (
        f"{close} of {len(ratios)} within 20 %. On {place}, calibrated before, {torch.get_num_threads()} threads, "
        f"a load of {load:.1f} when it began."
    )
    print(words)
    if given.write:
        write_page(PAGE, {"scratch": "\n".join([*lines, "", words])}, {})


def timed(model: str, batch_size: int, n_epochs: int, side: int) -> tuple[str, str, float]:
    """A run with its forecast, as a line of the table; where it was; and forecast over measured."""
    data = load_dataset("digits", image_side=side)
    settings = TrainSettings(n_epochs=n_epochs, batch_size=batch_size, learning_rate=0.1, weight_decay=0.0)
    recipe = ScratchRecipe(model=model, data=data, settings=settings)
    forecast = forecast_stages(recipe.stages())
    with tempfile.TemporaryDirectory() as folder:
        result = recipe.run(Path(folder)).training
    (low, high), ratio = forecast.interval(), forecast.total_s / result.total_s
    cells = (
        f"{forecast.total_s:.2f} s",
        f"{low:.2f} to {high:.2f} s",
        f"{result.total_s:.2f} s",
        f"{ratio:.2f}",
        f"{100 * result.test_accuracy:.1f} %",
    )
    return (
        f"| {model} | {batch_size} | {side} x {side} | {n_epochs} | {' | '.join(cells)} |",
        forecast.place,
        ratio,
    )


if __name__ == "__main__":
    main()
