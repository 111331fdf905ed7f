"""Fine-tuning against frozen features on the digits:  python benchmarks/recipe_transfer.py [--out DIR] [--write]

Learns the digits 0 to 4 from scratch and carries the network over to 5 to 9, with every approach, rate and seed, as
`traincast train transfer` does. Takes three to four minutes of CPU time. Run 'traincast calibrate' first, or the
forecast is that of a generic CPU. With --write the tables of docs/transfer_learning.md and its chart are renewed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import torch

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from recipe_page import markdown
from traincast.api.recipe_forecast import forecast_stages
from traincast.cli.counted import counted
from traincast.recipes.data.load import load_dataset
from traincast.recipes.transfer_learning.recipe import TransferRecipe
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.report.table import Column, Table
from traincast.views.train_transfer import transfer_document

PAGE = Path(__file__).parents[1] / "docs" / "transfer_learning.md"
IMAGE = PAGE.parent / "images" / "transfer_recipe.png"
ELSEWHERE = "V100-SXM2-16GB"


def elsewhere(recipe: TransferRecipe) -> Table:
    """One step of each approach on a GPU, by phase."""
    phases = ("step_s", "forward_s", "backward_s", "optimizer_s")
    columns = [Column(key="stage", header=f"on {ELSEWHERE}", show="name")]
    columns += [Column(key=phase, header=phase.removesuffix("_s"), show="duration") for phase in phases]
    columns.append(Column(key="peak_memory_bytes", header="memory", show="bytes"))
    rows = [
        (stage.name, *(getattr(stage.step, phase) or None for phase in phases), stage.peak_memory_bytes)
        for stage in forecast_stages(recipe.stages(), on=ELSEWHERE).stages
    ]
    return Table(title="Elsewhere", columns=tuple(columns), rows=tuple(rows))


def course_case() -> TransferRecipe:
    """ResNet-50 at 224 pixels on as many images as the digits have: what a GPU is used for."""
    data = load_dataset("digits", image_side=224)
    return TransferRecipe(model="resnet50", data=data, n_seeds=1, n_epochs=1, n_source_epochs=1)


def circumstances(place: str, n_threads: int, load: tuple[float, float]) -> str:
    """What the times were taken under, and whether they say anything about the forecast."""
    n_cores = os.cpu_count() or 1
    told = (
        f"The forecast is for {place}. The runs had {n_threads} of {n_cores} threads; the load average was "
        f"{load[0]:.1f} before them and {load[1]:.1f} after."
    )
    if n_threads < n_cores or max(load) > n_cores + 0.5:  # its own threads are in the load
        told += (
            " **These times do not test the forecast**, which is for the machine with all of its threads and nothing "
            "else to do: other programs ran at the same time, or threads were held back."
        )
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the runs; what is finished there is not run again")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--source-epochs", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="renew docs/transfer_learning.md")
    asked = parser.parse_args()
    data = load_dataset("digits")
    recipe = TransferRecipe(
        model="cifar_resnet20",
        data=data,
        n_epochs=asked.epochs,
        n_source_epochs=asked.source_epochs,
        n_seeds=asked.seeds,
        batch_size=64,
    )
    load_before = os.getloadavg()[0]
    forecast = forecast_stages(recipe.stages())
    with tempfile.TemporaryDirectory() as scrap, counted("Runs") as tell:
        result = recipe.run(asked.out or Path(scrap), tell)
    load_after = os.getloadavg()[0]
    document = transfer_document(recipe, forecast, result)
    accuracy, times, whole = document.tables
    tables = {
        "settings": f"{document.subtitle[0].upper()}{document.subtitle[1:]}; seeds: {asked.seeds}.",
        "accuracy": markdown(accuracy),
        "verdict": "\n".join(f"- {note}" for note in document.notes),
        "times": f"{markdown(times)}\n\nAll runs together:\n\n{markdown(whole)}",
        "load": circumstances(forecast.place, torch.get_num_threads(), (load_before, load_after)),
        "elsewhere": markdown(elsewhere(course_case())),
    }
    print("\n\n".join(tables.values()))
    if asked.write:
        print(f"Wrote {write_file(PAGE, refresh(PAGE.read_text(encoding='utf-8'), tables))}")
        print(f"Wrote {write_file(IMAGE, to_png(document.charts[0]))}")


if __name__ == "__main__":
    main()
