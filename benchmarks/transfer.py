"""A learning curve before it runs:  python benchmarks/transfer.py --data DIR [--write]

Six CIFAR-10 ResNets on three GPUs, from a course report of 2022: each model from the five others, beside the report's
kernel ridge and simpler rivals. With --write the tables and images of docs/size_transfer.md are renewed.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.api.time_to_accuracy import time_to_accuracy
from traincast.curves.size_transfer.charts import curve_chart, error_chart, parameter_chart
from traincast.curves.size_transfer.fits import Fit, read_fits
from traincast.curves.size_transfer.hardware import hardware_test
from traincast.curves.size_transfer.held_out import Law
from traincast.curves.size_transfer.held_out import law_of as optimus_law
from traincast.curves.size_transfer.transferred import QUANTITIES, Transferred, predict_parameters
from traincast.curves.size_transfer.workers_curve import WorkersCurve
from traincast.report.chart import Chart
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.scaling.optimus import SpeedModel
from traincast.units import show_duration
from traincast.views.size_transfer import workers_chart
from transfer_rivals import RIVALS, Rival, ridge

DOCS = Path(__file__).parents[1] / "docs"
# ResNet-18 and -50 of the report have a 7x7 stem with stride 2, pooling, and another block: another family.
FAMILIES = {f"resnet{depth}": "thin" for depth in (20, 32, 44, 56)} | {"resnet18": "wide", "resnet50": "wide"}
STEPS_PER_EPOCH = 391  # 50,000 images in batches of 128
TOTAL_STEPS = 350 * STEPS_PER_EPOCH
ASKED = 50
Floats = NDArray[np.float64]


def law_of(fit: Fit) -> Law:
    return optimus_law(fit.b0, fit.b1, fit.b2)


def main() -> None:
    """Predicts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with seeds/")
    parser.add_argument("--write", action="store_true", help="write docs/size_transfer.md and its images")
    options = parser.parse_args()
    seeds = options.data / "seeds"
    read = read_fits(seeds / "optimus_fits.csv", split="train")
    fits = tuple(replace(fit, family=FAMILIES.get(fit.model, fit.family)) for fit in read)
    held = {fit.n_layers: leave_out(fits, fit.n_layers) for fit in fits}
    asked = held[ASKED]
    speeds = speed_models(seeds / "optimus_speed_coefficients.csv")
    times = {
        mode: time_to_accuracy(
            asked.estimates["epochs"], speed, steps_per_epoch=STEPS_PER_EPOCH, n_workers=range(1, 33)
        )
        for mode, speed in speeds.items()
    }
    tables = {
        "hardware": hardware_table(fits),
        "asked": asked_table(fits, asked, seeds / "optimus_resnet50_regression.csv"),
        "curves": curves_table(fits, held),
        "held out": held_table(fits),
        "rivals": rivals_table(fits),
        "coverage": coverage_line(fits, held),
        "workers": workers_table(times),
    }
    print("\n\n".join(f"{name}\n{table}" for name, table in tables.items()))
    if options.write:
        page = DOCS / "size_transfer.md"
        write_file(page, refresh(page.read_text(encoding="utf-8"), tables))
        for name, chart in charts(fits, asked, times).items():
            write_file(DOCS / "images" / f"{name}.png", to_png(chart))


def leave_out(fits: Sequence[Fit], depth: int) -> Transferred:
    seen, real = without(fits, depth), of(fits, depth)
    return predict_parameters(seen, depth, total_steps=TOTAL_STEPS, family=real[0].family)


def without(fits: Sequence[Fit], depth: int) -> list[Fit]:
    return [fit for fit in fits if fit.n_layers != depth]


def of(fits: Sequence[Fit], depth: int) -> list[Fit]:
    return [fit for fit in fits if fit.n_layers == depth]


def depths_of(fits: Sequence[Fit]) -> list[int]:
    return sorted({fit.n_layers for fit in fits})


def speed_models(path: Path) -> dict[str, SpeedModel]:
    """Equation 4 with the quoted coefficients; the synchronous one at the report's batch of 128."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = {row["mode"]: row for row in csv.DictReader(stream)}
    theta = {
        mode: tuple(float(row[f"theta_{n}"]) for n in range(1, 6) if row[f"theta_{n}"]) for mode, row in rows.items()
    }
    return {
        "sync": SpeedModel(mode="sync", theta=theta["sync"], batch_size=128),
        "async": SpeedModel(mode="async", theta=theta["async"]),
    }


def curve_errors(predicted: Callable[[Floats], Floats], real: Law) -> tuple[float, float]:
    """Mean |error| over steps evenly apart, and over steps evenly apart on a logarithmic axis."""
    even, logs = np.linspace(1, TOTAL_STEPS, 400), np.geomspace(1, TOTAL_STEPS, 400)
    return tuple(float(np.abs(predicted(steps) / real(steps) - 1).mean()) for steps in (even, logs))  # type: ignore[return-value]


def hardware_table(fits: Sequence[Fit]) -> str:
    tests = [hardware_test(fits, quantity) for quantity in QUANTITIES]
    rows = [
        (
            each.quantity,
            str(each.n_rows),
            str(each.n_models),
            str(each.n_gpus),
            percent(each.spread_fraction),
            f"{each.p_value:.2f}",
        )
        for each in tests
        if each is not None
    ]
    return table(("quantity", "rows", "models", "GPUs", "highest over lowest GPU", "p"), rows)


def asked_table(fits: Sequence[Fit], asked: Transferred, published: Path) -> str:
    """ResNet-50 by GPU: the fit, the printed ridge, ours."""
    with published.open(encoding="utf-8", newline="") as stream:
        printed = {row["gpu"]: row for row in csv.DictReader(stream)}
    seen, rows = without(fits, ASKED), []
    for fit in of(fits, ASKED):
        for quantity in QUANTITIES:
            theirs = printed[fit.gpu].get(f"{quantity}_hat")
            their_value = ridge(seen, fit, quantity) if theirs is None else float(theirs)
            mine, real = asked.estimates[quantity], getattr(fit, quantity)
            rows.append(
                (
                    f"{fit.gpu}, {quantity}", f"{real:.3g}", f"{their_value:.3g}", signed(their_value / real - 1),
                    f"{mine.value:.3g}", f"{mine.low:.3g} to {mine.high:.3g}", signed(mine.value / real - 1),
                )
            )  # fmt: skip
    return table(("ResNet-50", "fitted", "ridge", "error", "ours", "p10 to p90", "error"), rows)


def ridge_law(seen: Sequence[Fit], asked: Fit) -> Law:
    return optimus_law(*(ridge(seen, asked, name) for name in ("b0", "b1", "b2")))


def curves_table(fits: Sequence[Fit], held: dict[int, Transferred]) -> str:
    """Error of the curve, mean over the GPUs, of each model left out."""
    rows, sums = [], []
    for depth in depths_of(fits):
        theirs = [curve_errors(ridge_law(without(fits, depth), fit), law_of(fit)) for fit in of(fits, depth)]
        mine = [curve_errors(held[depth].curve.predict, law_of(fit)) for fit in of(fits, depth)]  # type: ignore[arg-type]
        found = [*np.mean(theirs, axis=0), *np.mean(mine, axis=0)]
        sums.append(found)
        rows.append((f"ResNet-{depth}", *(percent(found[place]) for place in (0, 2, 1, 3))))
    mean = np.mean(sums, axis=0)
    rows.append(("mean", *(percent(mean[place]) for place in (0, 2, 1, 3))))
    return table(("left out", "even steps: ridge", "ours", "log steps: ridge", "ours"), rows)


def held_table(fits: Sequence[Fit]) -> str:
    """Mean |error| over the GPUs, of each model left out."""
    rows = []
    for depth in depths_of(fits):
        cells = [
            percent(found)
            for what in QUANTITIES
            for rival in (ridge, RIVALS["**ours**"])
            for found in [error(fits, depth, what, rival)]
        ]
        rows.append((f"ResNet-{depth}", *cells))
    means = [
        percent(float(np.mean([error(fits, depth, what, rival) for depth in depths_of(fits)])))
        for what in QUANTITIES
        for rival in (ridge, RIVALS["**ours**"])
    ]
    header = ("left out", *(f"{what}: {who}" for what in QUANTITIES for who in ("ridge", "ours")))
    return table(header, [*rows, ("mean", *means)])


def error(fits: Sequence[Fit], depth: int, quantity: str, rival: Rival) -> float:
    seen = without(fits, depth)
    return float(np.mean([abs(rival(seen, fit, quantity) / getattr(fit, quantity) - 1) for fit in of(fits, depth)]))


def rivals_table(fits: Sequence[Fit]) -> str:
    """Of every form that was tried: mean over six models, and ResNet-50 alone."""
    rows = []
    for name, rival in RIVALS.items():
        errors = {what: [error(fits, depth, what, rival) for depth in depths_of(fits)] for what in QUANTITIES}
        place = depths_of(fits).index(ASKED)
        cells = [cell for found in errors.values() for cell in (percent(float(np.mean(found))), percent(found[place]))]
        rows.append((name, *cells))
    header = ("form", *(f"{what}: {which}" for what in QUANTITIES for which in ("6 models", "ResNet-50")))
    return table(header, rows)


def coverage_line(fits: Sequence[Fit], held: dict[int, Transferred]) -> str:
    inside = [
        held[fit.n_layers].estimates[what].low <= getattr(fit, what) <= held[fit.n_layers].estimates[what].high
        for fit in fits
        for what in QUANTITIES
    ]
    return f"p10 to p90 holds {sum(inside)} of {len(inside)} values ({percent(sum(inside) / len(inside))})."


def workers_table(times: dict[str, tuple[WorkersCurve, ...]]) -> str:
    rows = []
    for mode, curves in times.items():
        for curve in curves:
            best = int(np.argmin(curve.time_s))
            spread = f"{show_duration(float(curve.low_s[best]))} to {show_duration(float(curve.high_s[best]))}"
            rows.append(
                (
                    f"{mode}, {curve.n_servers} servers", str(curve.best_n_workers),
                    show_duration(float(curve.time_s[best])), spread, str(curve.enough_n_workers),
                )
            )  # fmt: skip
    return table(("", "best workers of 1 to 32", "time", "p10 to p90", "workers within 10 %"), rows)


def charts(fits: Sequence[Fit], asked: Transferred, times: dict[str, tuple[WorkersCurve, ...]]) -> dict[str, Chart]:
    seen = without(fits, ASKED)
    depths = (18, 24, 32, 40, 50, 60)
    predicted = [predict_parameters(seen, depth, total_steps=TOTAL_STEPS, family="wide") for depth in depths]
    real = {fit.gpu: fit for fit in of(fits, ASKED)}["Tesla V100-PCIE-32GB"]
    theirs = ridge_law(seen, real)
    return {
        **{f"transfer_{what}": parameter_chart(fits, predicted, what) for what in QUANTITIES},
        "transfer_curve": curve_chart(asked, {"fitted to the real run": law_of(real), "report's ridge": theirs}),
        "transfer_error": error_chart(asked, law_of(real), {"report's ridge": theirs}),
        "transfer_workers": workers_chart(times["sync"], title="ResNet-50 to 92 %, synchronous, by workers"),
        "transfer_workers_async": workers_chart(times["async"], title="ResNet-50 to 92 %, asynchronous, by workers"),
    }


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def signed(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


if __name__ == "__main__":
    main()
