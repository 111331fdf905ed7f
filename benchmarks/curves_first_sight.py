"""What does the code as it is say about learning curves that no fit has seen? Writes docs/curves_first_sight.md, once.

    python benchmarks/curves_first_sight.py --data ../shared/data [--processes 2] [--rows FILE] [--write]

Every curve is asked as a user would, from a part of it, with its length and its kind told, and beside the last value,
Optimus' law and a power law. Where learning rates were logged, it is asked once more with the rate of the whole run.
Curves of MLPerf end at their target, so that the time to it is asked, and no length is told. Takes three
minutes.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
import traincast as tc
from curves_first_sight_page import METHODS, page
from first_sight import engine_commit
from lab.accuracy.law_curves import MLPERF, StrangerCurve, evenly, stranger_curves
from simple_laws import simple_laws
from traincast.curves.curve import Curve
from traincast.errors import InputError
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "curves_first_sight.md"
SHARES = (0.2, 0.4, 0.6, 0.8)
OF_FAMILY, OF_SOURCE = 20, 80  # curves at most
FEWEST = 4  # points that a curve is fitted to
SMOOTH = 0.05  # of the run, over which a target is a median
FURTHEST = 10.0  # times what was seen: no answer is later, where nobody tells the length
GRID = 2000
THOUSAND = 1e3
LEAST = 1e-4  # of the top: no accuracy lacks less
Fit = Callable[..., Curve]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one method said from a part of one curve. Shares of the true value; not a number where nothing was asked."""

    source: str
    family: str
    run: str
    split: str
    metric: str
    share: float
    method: str
    refused: str = ""
    final_error: float = np.nan
    final_inside: float = np.nan
    final_width: float = np.nan  # p90 less p10
    target_error: float = np.nan
    target_inside: float = np.nan


def rows_of(curve: StrangerCurve, fit: Fit = tc.fit_curve) -> list[Row]:
    return [row for share in SHARES for row in rows_from(curve, share, fit)]


def rows_from(curve: StrangerCurve, share: float, fit: Fit) -> list[Row]:
    seen = curve.steps <= share * curve.end
    made = partial(
        Row,
        source=curve.source,
        family=curve.family,
        run=curve.run,
        split=curve.split,
        metric=curve.metric,
        share=share,
    )
    if seen.sum() < FEWEST:
        return [made(method=method, refused="fewer than 4 points") for method in METHODS]
    steps, values = curve.steps[seen], curve.values[seen]
    told = [made(method="ours", **asked(curve, steps, values, None, fit))]
    if curve.rates is not None:
        told.append(made(method="ours, rate told", **asked(curve, steps, values, curve.rates, fit)))
    return told + [made(method=name, **figures) for name, figures in simply(curve, steps, values).items()]


def asked(
    curve: StrangerCurve, steps: np.ndarray, values: np.ndarray, rates: np.ndarray | None, fit: Fit
) -> dict[str, object]:
    """By the public call, or by one with other priors."""
    is_open = curve.source == MLPERF
    rate = None if rates is None else (lambda step: float(np.interp(step, curve.steps, rates)))
    try:
        found = fit(steps, values, total_steps=None if is_open else curve.end, metric=curve.kind, learning_rate=rate)
        figures: dict[str, object] = {}
        if not is_open:
            low, high = found.interval(curve.end)
            figures |= final(curve, float(found.predict(curve.end)), low, high)
        if (wanted := target_of(curve, steps[-1])) is not None:
            target, true, latest = wanted
            low, reached, high = found.quantiles_of(found.crossings(target))
            figures["target_error"] = abs(min(reached, latest) / true - 1.0)
            figures["target_inside"] = float(low <= true <= high)
    except InputError as error:
        return {"refused": str(error)[:60]}
    return figures


def final(curve: StrangerCurve, predicted: float, low: float = np.nan, high: float = np.nan) -> dict[str, object]:
    true = curve.final
    figures: dict[str, object] = {"final_error": abs(predicted - true) / abs(true)}
    if np.isfinite([low, high]).all():
        figures |= {"final_inside": float(low <= true <= high), "final_width": (high - low) / abs(true)}
    return figures


def simply(curve: StrangerCurve, steps: np.ndarray, values: np.ndarray) -> dict[str, dict[str, object]]:
    """Laws of what falls: of what rises, they are fitted to what that lacks to its top."""
    top = (1.0 if values.max() <= 1.0 else 100.0) if curve.is_rising else None
    fitted = values if top is None else np.maximum(top - values, LEAST * top)
    said = {}
    unit = steps[-1] / THOUSAND  # SciPy's start is of that size
    for name, law in simple_laws(steps / unit, fitted).items():
        figures: dict[str, object] = {}
        if curve.source != MLPERF:
            value = float(law(curve.end / unit))
            figures |= final(curve, value if top is None else top - value)
        if (wanted := target_of(curve, steps[-1])) is not None:
            target, true, latest = wanted
            grid = np.geomspace(steps[-1] or 1.0, latest, GRID)
            is_there = law(grid / unit) <= (target if top is None else top - target)
            reached = grid[np.argmax(is_there)] if is_there.any() else latest
            figures["target_error"] = abs(reached / true - 1.0)
        said[name] = figures
    return said


def target_of(curve: StrangerCurve, seen: float) -> tuple[float, float, float] | None:
    """A target, the step that reaches it, and the latest that is answered; None where it had been reached already.

    The target is what the run has half way between what was seen and its end.
    """
    if curve.target is not None:
        return curve.target, curve.end, max(FURTHEST * seen, 1.0)
    n = max(1, round(SMOOTH * len(curve.values)))
    values = curve.values
    smooth = np.array([np.median(values[max(0, place - n) : place + 1]) for place in range(len(values))])
    target = float(smooth[min(np.searchsorted(curve.steps, (seen + curve.end) / 2), len(smooth) - 1)])
    is_there = smooth >= target if curve.is_rising else smooth <= target
    true = float(curve.steps[np.argmax(is_there)])
    return (target, true, curve.end) if true > seen else None


def score(curves: Sequence[StrangerCurve], processes: int) -> list[Row]:
    os.environ["OMP_NUM_THREADS"] = "1"
    found: list[Row] = []
    with ProcessPoolExecutor(processes) as pool:
        for number, rows in enumerate(pool.map(rows_of, curves, chunksize=4), start=1):
            found += rows
            if number % 50 == 0:
                print(f"{number} of {len(curves)} curves", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="write every answer to this CSV file")
    parser.add_argument(
        "--write", action="store_true", help="write docs/curves_first_sight.md, which must not be there"
    )
    arguments = parser.parse_args()
    if arguments.write and PAGE.exists():
        raise InputError(f"A first sight is written down once, and there is '{PAGE}': leave out --write.")
    commit = engine_commit()
    sources = stranger_curves(arguments.data)
    chosen = [curve for curves in sources.values() for curve in evenly(curves, of_family=OF_FAMILY, of_all=OF_SOURCE)]
    rows = score(chosen, arguments.processes)
    if arguments.rows:
        with arguments.rows.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [field.name for field in fields(Row)])
            writer.writeheader()
            writer.writerows(map(asdict, rows))
    n_of = {source: len(curves) for source, curves in sources.items()}
    text = page(rows, n_of, most=(OF_FAMILY, OF_SOURCE), commit=commit, when=f"{date.today()}")
    print(text)
    if arguments.write:
        print(f"Wrote {write_file(PAGE, text)}")


if __name__ == "__main__":
    main()
