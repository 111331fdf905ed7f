"""How well are learning curves continued?  python benchmarks/curves.py --data DIR [--write]

Every run is forecast from a part of it with priors that were fitted without its source; Optimus' law, a power law with
offset and the last value stand beside it. Takes about three minutes. With --write the page docs/curves_accuracy.md is
made.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from curves_page import ACCURACY_SHARE, LOSS_SHARES, Row, page
from lab.refit.curves.fit import drops_of, fit_priors, fit_run, forecast_of
from lab.refit.curves.runs import Run, read_runs
from lab.refit.curves.strangers import cases_of
from simple_laws import simple_laws
from traincast.curves.fit import continue_like, fit_curve
from traincast.curves.priors import Priors
from traincast.curves.untold import fit_untold
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "curves_accuracy.md"
TARGET_SHARE = 0.5
TARGETS_AT = (0.75, 0.9)  # of the run: the loss that it has there is the target
SMOOTH = 0.05  # of the run


def simple_finals(run: Run, share: float) -> dict[str, float]:
    points = run.until(share)
    assert points is not None
    found = {name: float(law(run.end)) for name, law in simple_laws(points.steps, points.values).items()}
    return {name: 1.0 - value if run.is_accuracy else value for name, value in found.items()}


def rows_of(runs: Iterable[Run], priors: dict[str, Priors]) -> list[Row]:
    """Every run from its shares, by the priors that its source had no part in."""
    rows = []
    for run in runs:
        for share in (ACCURACY_SHARE,) if run.is_accuracy else LOSS_SHARES:
            found = forecast_of(run, share, priors[run.source])
            if found is not None:
                rows.append(Row(run, share, *found, simple_finals(run, share)))
    return rows


def rows_less_told(runs: Iterable[Run], priors: dict[str, Priors], *, tells_length: bool) -> list[Row]:
    """As `rows_of`, but nobody tells the learning rate, nor, it may be, where the run ends."""
    rows = []
    for run in runs:
        for share in (ACCURACY_SHARE,) if run.is_accuracy else LOSS_SHARES:
            points = run.until(share)
            if points is None:
                continue
            top, length = 1.0 if run.is_accuracy else None, run.end if tells_length else None
            curve = fit_untold(points, total_steps=length, top=top, priors=priors[run.source])
            low, high = curve.interval(run.end)
            rows.append(Row(run, share, float(low), float(curve.predict(run.end)), float(high), {}))
    return rows


def n_other_paths(runs: Iterable[Run]) -> tuple[int, int]:
    """Losses where the public call does not fit as scored here (those seen so far do not fall), of how many."""
    n_other, n_all = 0, 0
    for run in runs:
        for share in () if run.is_accuracy else LOSS_SHARES:
            points = run.until(share)
            if points is None:
                continue
            public = fit_curve(points.steps, points.values, total_steps=run.end, metric="loss").predict(run.end)
            scored = fit_untold(points, total_steps=run.end).predict(run.end)
            n_other, n_all = n_other + (not np.isclose(public, scored, rtol=1e-6)), n_all + 1
    return n_other, n_all


def rows_like_siblings(runs: Sequence[Run]) -> list[Row]:
    """Every run continued as those of its source and data set with another configuration went, where there are any."""
    rows = []
    for run in runs:
        share = ACCURACY_SHARE if run.is_accuracy else 0.4
        kind = (run.source, run.dataset, run.column)
        siblings = [
            other
            for other in runs
            if (other.source, other.dataset, other.column) == kind and other.configuration != run.configuration
        ]
        points = run.until(share)
        if points is None or not siblings:
            continue
        n_seen = len(points.steps)
        curve = continue_like(
            run.steps[:n_seen],
            run.values[:n_seen],
            [(other.steps, other.values) for other in siblings],
            total_steps=run.end,
            metric="accuracy" if run.is_accuracy else "loss",
        )
        low, high = curve.interval(run.end)
        others = {
            "siblings": float(np.median([other.final for other in siblings])),
            "last": float(run.values[n_seen - 1]),
        }
        rows.append(Row(run, share, float(low), float(curve.predict(run.end)), float(high), others))
    return rows


def target_errors(run: Run, priors: Priors) -> list[float]:
    """Of the steps to losses that the run has later on, from half of it, in percent of the true steps."""
    points = run.until(TARGET_SHARE)
    if points is None or run.is_accuracy:
        return []
    n = max(1, round(SMOOTH * len(run.values)))
    smooth = np.array([np.median(run.values[max(0, place - n) : place + 1]) for place in range(len(run.values))])
    curve = fit_run(run, points, priors)
    errors = []
    for at in TARGETS_AT:
        target = float(smooth[np.searchsorted(run.steps, at * run.end)])
        true = float(run.steps[np.argmax(smooth <= target)])
        if true > points.last_step:  # else it has been there already
            found = min(curve.steps_to(target), run.end)  # a run that does not get there ends without it
            errors.append(100 * abs(found - true) / true)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the public measurements")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    runs = read_runs(given.data)
    drops, cases = drops_of(runs), cases_of(given.data, runs)
    sources = sorted({run.source for run in runs})
    priors = {
        source: fit_priors(
            [drop for drop in drops if drop.run.source != source],
            [run for run in runs if run.source != source],
            [case for case in cases if case.source != source],
        )
        for source in sources
    }
    start_s = time.perf_counter()
    rows = rows_of(runs, priors)
    each_ms = 1e3 * (time.perf_counter() - start_s) / len(rows)
    targets = {
        source: [e for run in runs if run.source == source for e in target_errors(run, priors[source])]
        for source in sources
    }
    less_told = [
        ("length and rate, where known", rows),
        ("length", rows_less_told(runs, priors, tells_length=True)),
        ("nothing", rows_less_told(runs, priors, tells_length=False)),
    ]
    text = page(rows, rows_like_siblings(runs), targets, each_ms, less_told, n_other_paths(runs))
    print(text)
    if given.write:
        write_file(PAGE, text)


if __name__ == "__main__":
    main()
