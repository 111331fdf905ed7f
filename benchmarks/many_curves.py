"""A thousand curves: how long does it take to fit them?  python benchmarks/many_curves.py [--write]

Made-up noisy losses with 20 to 2,000 points, fitted by `tc.fit_curve` one after the other and in two processes, and
asked for their end and for the step of a target. Times are those of the machine at hand: no test asserts them.
With --write the page docs/many_curves.md is made.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import traincast as tc
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "many_curves.md"
N_CURVES, AIM_S = 1_000, 60.0
FEWEST, MOST = 20, 2_000
N_PROCESSES = 2
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Made:
    """A run of which 40 % were logged: its points, its length, and a target on its way."""

    steps: Floats
    losses: Floats
    total_steps: float
    target: float


def made_up(number: int) -> Made:
    """A power law above a floor, with noise in proportion, and a spike in every tenth."""
    rng = np.random.default_rng(number)
    n_points = round(float(np.exp(rng.uniform(np.log(FEWEST), np.log(MOST)))))
    steps = np.linspace(1.0, rng.uniform(1e3, 1e5), n_points)
    floor, scale, exponent = rng.uniform(0.02, 2.5), rng.uniform(1.0, 6.0), rng.uniform(0.2, 0.8)
    law = floor + scale * (1 + steps / 50) ** -exponent
    losses = law * np.exp(rng.uniform(0.002, 0.08) * rng.standard_normal(n_points))
    if number % 10 == 0:
        losses[rng.integers(n_points)] *= 5.0
    end = 2.5 * steps[-1]
    return Made(steps, losses, end, floor + scale * (1 + 0.8 * end / 50) ** -exponent)


def fitted(number: int, family: str) -> float:
    made = made_up(number)
    curve = tc.fit_curve(made.steps, made.losses, family, total_steps=made.total_steps)
    return float(np.asarray(curve.predict(made.total_steps)))


def answered(number: int, family: str) -> float:
    made = made_up(number)
    curve = tc.fit_curve(made.steps, made.losses, family, total_steps=made.total_steps)
    return float(np.asarray(curve.predict(made.total_steps))) + curve.steps_to(made.target)


WORKS: dict[str, Callable[[int], float]] = {
    "`auto`: fit and end": partial(fitted, family="auto"),
    "`auto`: fit, end and step of a target": partial(answered, family="auto"),
    "`optimus`: fit and end": partial(fitted, family="optimus"),
    "`optimus`: fit, end and step of a target": partial(answered, family="optimus"),
}


def row_of(name: str, work: Callable[[int], float], n_curves: int) -> tuple[str, ...]:
    """Seconds in one process, its CPU time, and seconds in two, with their start and the imports in them."""
    work(0)  # imports
    start, cpu = time.perf_counter(), time.process_time()
    for number in range(n_curves):
        work(number)
    one_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    with ProcessPoolExecutor(N_PROCESSES) as pool:
        list(pool.map(work, range(n_curves), chunksize=25))
    two_s = time.perf_counter() - start
    return (
        name, f"{one_s:.1f} s", f"{cpu_s:.1f} s", f"{1e3 * cpu_s / n_curves:.1f} ms", f"{two_s:.1f} s",
        f"{one_s / two_s:.2f}", f"{AIM_S / two_s:.1f}",
    )  # fmt: skip


def page_of(rows: list[tuple[str, ...]], n_curves: int) -> str:
    header = (
        "", "one process", "its CPU time", "a curve", "two processes", "times as fast", f"{AIM_S:.0f} s over that",
    )  # fmt: skip
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    table = "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
    load = os.getloadavg()[0]
    return f"""# A thousand curves

Written by `python benchmarks/many_curves.py --write` on {datetime.date.today()}, on {os.cpu_count()} cores
({platform.machine()}, Python {platform.python_version()}; load average {load:.1f} at the end: above {N_PROCESSES},
other work ran beside it).

{n_curves:,} made-up noisy losses with {FEWEST} to {MOST:,} points (evenly spread in logarithms) are fitted by
`tc.fit_curve`. The aim is {N_CURVES:,} curves in {AIM_S:.0f} s on two cores. Making up the curves is in the times,
and so is the start of the processes.

{table}

The step of a target asks all members of a curve at 800 places, which takes longer than the fit of the 512 of `auto`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", type=int, default=N_CURVES)
    parser.add_argument("--write", action="store_true", help="write docs/many_curves.md")
    options = parser.parse_args()
    page = page_of([row_of(name, work, options.curves) for name, work in WORKS.items()], options.curves)
    print(page)
    if options.write:
        write_file(PAGE, page)


if __name__ == "__main__":
    main()
