"""Pretraining on noisy tags:  python benchmarks/recipe_weak.py [--runs DIR] [--times] [--write]

Trains on scikit-learn's digits: five seeds, four shares of noise, with and without square-root resampling, which is
more than the command does by itself. Takes about eight minutes of one core; killed or stopped, the same command goes
on. With --times a run of one seed and one share of noise is forecast and timed instead, for which nothing else should
run. With --write the tables of docs/weak_labels.md are renewed, and its image.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from recipe_page import DOCS, markdown, timed, write_page
from traincast.recipes.data.load import load_dataset
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.weak_labels.recipe import WeakRecipe
from traincast.views.train_weak import accuracy_chart, accuracy_table, resampling_table

PAGE = DOCS / "weak_labels.md"
NOISE_FRACTIONS = (0.0, 0.1, 0.25, 0.5)  # the paper's, and none


def main() -> None:
    """Trains or times, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/weak-digits"))
    parser.add_argument("--times", action="store_true", help="forecast and time one share of noise instead")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    given = parser.parse_args()
    if given.times:
        with tempfile.TemporaryDirectory() as folder:
            tables, charts = {"times": timed(_recipe(few=True), Path(folder))}, {}
    else:
        result = _recipe().run(given.runs, lambda done, total: print(f"\r{done:,} of {total:,}", end="", flush=True))
        tables = {"accuracy": markdown(accuracy_table(result)), "resampling": markdown(resampling_table(result))}
        charts = {"weak_labels": accuracy_chart(result)}
    print(*(f"\n{name}\n{table}" for name, table in tables.items()), sep="\n")
    if given.write:
        write_page(PAGE, tables, charts)


def _recipe(*, few: bool = False) -> WeakRecipe:
    data = load_dataset("digits")
    settings = TrainSettings(n_epochs=3, batch_size=32, learning_rate=0.03, weight_decay=1e-4)
    return WeakRecipe(
        data=data,
        settings=settings,
        model="cifar_resnet20",
        clean_fraction=0.05,
        imbalance=10.0,
        noise_fractions=(0.25,) if few else NOISE_FRACTIONS,
        n_seeds=1 if few else 5,
    )


if __name__ == "__main__":
    main()
