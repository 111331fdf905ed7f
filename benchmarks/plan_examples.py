"""Plans for three well-known runs, with the reasoning:  python benchmarks/plan_examples.py [--write]

With --write the blocks of docs/plan.md and the chart of the first plan are renewed (the chart needs the extra png).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import checkout  # noqa: F401 - finds lab
import traincast as tc
from lab.markdown import refresh
from traincast.__main__ import run
from traincast.planning.plan import Plan
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.units import show_duration, show_usd
from traincast.views.plan import document_of

DOCS = Path(__file__).parents[1] / "docs"
HOUR, DAY = 3_600.0, 86_400.0
MOST_DEVICES = 10


@dataclass(frozen=True, kw_only=True)
class Example:
    """A plan as a command, and the same in Python."""

    model: str
    flags: str
    options: dict[str, Any] = field(default_factory=dict)


EXAMPLES = {
    "imagenet": Example(
        model="resnet50",
        flags="--samples 1281167 --epochs 90 --batch-size 256 --optimizer momentum --deadline 24h",
        options={
            "n_samples": 1_281_167,
            "n_epochs": 90,
            "batch_size": 256,
            "optimizer": "momentum",
            "deadline_s": 24 * HOUR,
        },
    ),
    "gpt2": Example(
        model="gpt2",
        flags="--samples 9765625 --batch-size 512 --optimizer adamw --deadline 3d --budget 1000 --spot",
        options={
            "n_samples": 9_765_625,
            "batch_size": 512,
            "optimizer": "adamw",
            "deadline_s": 3 * DAY,
            "budget_usd": 1_000.0,
            "spot": True,
        },
    ),
    "patchcamelyon": Example(
        model="patchcamelyon_cnn",
        flags="--samples 262144 --epochs 30 --batch-size 64 --optimizer adam --precision fp32 --budget 2",
        options={
            "n_samples": 262_144,
            "n_epochs": 30,
            "batch_size": 64,
            "optimizer": "adam",
            "precision": "fp32",
            "budget_usd": 2.0,
        },
    ),
}


def main() -> None:
    """Plans, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/plan.md and its chart")
    options = parser.parse_args()
    os.environ.pop("COLUMNS", None)
    blocks: dict[str, str] = {}
    for name, example in EXAMPLES.items():
        plan = tc.plan(example.model, **example.options)
        blocks[name] = command(example)
        blocks[f"{name} devices"] = by_device(plan)
        if name == "imagenet":
            blocks["job"] = command(example, more=" --as sky")
            chart = document_of(plan).charts[0]
    print("\n\n".join(blocks.values()))
    if options.write:
        page = DOCS / "plan.md"
        write_file(page, refresh(page.read_text(encoding="utf-8"), blocks))
        write_file(DOCS / "images" / "plan.png", to_png(chart))
        print(f"Wrote {page} and its chart")


def command(example: Example, more: str = "") -> str:
    """What the command prints, behind the command."""
    line = f"plan {example.model} {example.flags}{more}"
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        code = run(line.split())
    assert code == 0, line
    return f"```text\n$ traincast {line}\n{page.getvalue().rstrip()}\n```"


def by_device(plan: Plan) -> str:
    """The cheapest plan of every device that keeps the limits, and what it takes."""
    found, steps = plan.candidates, plan.steps
    is_kept = found.probability >= plan.limits.confidence
    places = np.array([place.device.name for place in steps.places])
    devices = places[steps.place[found.row]]
    best = []
    for device in np.unique(devices):
        own = np.flatnonzero(is_kept & (devices == device))
        if len(own):
            best.append(int(own[np.lexsort((found.total_s[own], found.cost_usd[own]))[0]]))
    best.sort(key=lambda number: found.cost_usd[number])
    lines = [
        "| device | rent | precision | strategy | time | cost | kept | of the price |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | --- |",
        *(_line(plan, number, str(devices[number])) for number in best[:MOST_DEVICES]),
    ]
    n_none = len(np.unique(devices)) - len(best)
    more = f"{len(best)} of {len(np.unique(devices))} devices have a plan that keeps the limits"
    return "\n".join([*lines, "", f"{more}; {n_none} have none." if n_none else f"{more}."])


def _line(plan: Plan, number: int, device: str) -> str:
    found, steps = plan.candidates, plan.steps
    row, offer = found.row[number], plan.space.offers[found.offer[number]]
    place = steps.places[steps.place[row]]
    rent = f"{place.n_nodes} x `{offer.name}`{', spot' if found.is_spot[number] else ''}"
    strategy = steps.strategies[steps.strategy[row]].name if place.n_devices > 1 else "-"
    passes = f", {steps.n_passes[row]} passes" if steps.n_passes[row] > 1 else ""
    shown: tuple[Callable[[float], str], ...] = (show_duration, show_usd)
    time, cost = (
        show(float(value[number])) for show, value in zip(shown, (found.total_s, found.cost_usd), strict=True)
    )
    kept = f"{100 * found.probability[number]:.0f} %"
    cells = (device, rent, steps.precisions[steps.precision[row]], strategy + passes, time, cost, kept)
    return f"| {' | '.join(cells)} | {offer.price_date} |"


if __name__ == "__main__":
    main()
