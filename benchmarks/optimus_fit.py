"""The Optimus law fitted by us and by SciPy, side by side:  python benchmarks/optimus_fit.py [--points N] [--write]

Logs of known parameters (like those of residual networks on CIFAR-10: 350 epochs of 391 steps) with noise in proportion
to the loss. SciPy's `curve_fit` with bounds starts where it starts by itself, at (1, 1, 1), and beside the truth. Both
have one thread: with more, SciPy waits for its threads. Times are those that the thread had the processor, so that a
busy machine does not count. With --write the table goes to docs/optimus_curve.md.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # after the number of threads
from scipy.optimize import curve_fit

import traincast as tc
from traincast.curves.optimus_lines import Floats
from traincast.curves.optimus_solver import least_squares

PAGE = Path(__file__).parents[1] / "docs" / "optimus_curve.md"
LAST_STEP = 350 * 391
CURVES = ((2.7e-4, 0.55, 0.0), (1.2e-4, 0.67, 0.036), (5e-3, 0.58, 0.5))
NOISES = (0.01, 0.05, 0.2)
COLUMNS = (
    "b0, b1, b2",
    "noise",
    "ours, ms",
    "`fit_curve`, ms",
    "SciPy, ms",
    "SciPy from the truth, ms",
    "times faster",
    "`fit_curve`, times faster",
    "largest difference",
    "squared error, SciPy / ours - 1",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}"
START, END = "<!-- optimus_fit: start -->", "<!-- optimus_fit: end -->"


def law(k: Floats, b0: float, b1: float, b2: float) -> Floats:
    return 1.0 / (b0 * k + b1) + b2


def best_times_s(calls: Sequence[tuple[Callable[[], object], int]], *, n_rounds: int = 5) -> list[float]:
    """Of each call the least of its times, in rounds so that all see the same machine: it only ever adds."""
    best = [float("inf")] * len(calls)
    for _ in range(n_rounds):
        for place, (call, n_times) in enumerate(calls):
            for _ in range(n_times):
                start = time.thread_time()
                call()
                best[place] = min(best[place], time.thread_time() - start)
    return best


def row(truth: tuple[float, float, float], noise: float, n_points: int) -> str:
    """One log, fitted by both."""
    steps = np.linspace(1, LAST_STEP, n_points).round()
    losses = law(steps, *truth) * np.random.default_rng(0).normal(1.0, noise, n_points)

    def scipy_fit(start: tuple[float, ...] | None) -> Floats:
        return np.asarray(curve_fit(law, steps, losses, p0=start, bounds=(0, np.inf))[0])

    near = (truth[0], truth[1], truth[2] + 0.01)
    theirs = [scipy_fit(None), scipy_fit(near)]
    ours = least_squares(steps, losses)
    ours_s, whole_s, scipy_s, near_s = best_times_s(
        [
            (lambda: least_squares(steps, losses), 8),
            (lambda: tc.fit_curve(steps, losses, "optimus"), 8),
            (lambda: scipy_fit(None), 1),
            (lambda: scipy_fit(near), 1),
        ]
    )
    found = np.array([ours.b0, ours.b1, ours.b2])
    errors = [float(np.sum((law(steps, *each) - losses) ** 2)) for each in (found, *theirs)]
    best = theirs[int(np.argmin(errors[1:]))]
    # A floor at its bound is 0 for us and 1e-10 or so for SciPy, so its difference is one of the last loss.
    sizes = np.array([best[0], best[1], max(best[2], float(law(steps[-1:], *best)[0]))])
    difference = float(np.max(np.abs(found - best) / sizes))
    return (
        f"| {truth[0]:g}, {truth[1]:g}, {truth[2]:g} | {noise:.0%} | {1e3 * ours_s:.1f} | {1e3 * whole_s:.1f} | "
        f"{1e3 * scipy_s:.0f} | {1e3 * near_s:.0f} | {scipy_s / ours_s:.0f} | {scipy_s / whole_s:.0f} | "
        f"{difference:.0e} | {min(errors[1:]) / errors[0] - 1:.0e} |"
    )


def main() -> None:
    """Measures, prints, and writes the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    lines = [HEAD]
    print(HEAD)
    for truth in CURVES:
        for noise in NOISES:
            lines.append(row(truth, noise, options.points))
            print(lines[-1], flush=True)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        table = (
            f"{START}\n{options.points:,} points, one thread, best times of the processor.\n\n"
            + "\n".join(lines)
            + f"\n{END}"
        )
        PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
