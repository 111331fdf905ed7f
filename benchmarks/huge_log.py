"""A log of ten million rows, from the command to the answer:  python benchmarks/huge_log.py [--rows N] [--write]

Writes a CSV log into a temporary folder and runs `traincast converge` on it in a process of its own: what is measured
is what a user waits for, imports, reading, fitting and printing included. Times are those of the machine at hand: no
test asserts them. With --write the table goes to docs/logs.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "logs.md"
START, END = "<!-- huge_log: start -->", "<!-- huge_log: end -->"
AIM_S, AIM_BYTES = 10.0, 2e9
STEPS_PER_EPOCH = 100_000
AT_ONCE = 100_000
HEAD = "| what | file | wall time | CPU time | peak memory |\n| --- | ---: | ---: | ---: | ---: |"


@dataclass(frozen=True)
class Took:
    wall_s: float
    cpu_s: float
    peak_bytes: float


def write_log(path: Path, n_rows: int) -> None:
    """`epoch, step, loss, acc`: a step that begins again in every epoch, noisy losses, accuracies in percent."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write("epoch, step, loss, acc\n")
        for first in range(0, n_rows, AT_ONCE):
            steps = np.arange(first, min(first + AT_ONCE, n_rows))
            losses = (0.3 + 4.0 * (1 + steps / 1000) ** -0.4) * rng.normal(1.0, 0.05, len(steps))
            accuracies = 100 * np.exp(-0.6 * losses)
            columns = (steps // STEPS_PER_EPOCH, steps % STEPS_PER_EPOCH, losses, accuracies)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            file.write("".join(f"{epoch}, {step}, {loss:.6f}, {acc:.3f}\n" for epoch, step, loss, acc in rows))


def measure(*arguments: str) -> Took:
    """One command in a process of its own; the memory is that of the process at its largest."""
    started_s = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "traincast", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"traincast {' '.join(arguments)} ended with {process.returncode}.")
    kib = 1 if sys.platform == "darwin" else 1024
    return Took(time.perf_counter() - started_s, used.ru_utime + used.ru_stime, used.ru_maxrss * kib)


def rows_for(n_rows: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path, n_rows)
        size = f"{path.stat().st_size / 1e6:.0f} MB"
        total = ("--total-steps", str(2 * n_rows))
        asked = {
            "`converge log.csv --total-steps N`": ("converge", str(path), *total),
            "the same, `--target 0.4`": ("converge", str(path), *total, "--target", "0.4"),
            "the same, `--metric accuracy`": ("converge", str(path), *total, "--metric", "accuracy"),
            "`--help`: imports alone": ("--help",),
        }
        measure("--help")  # from here on Python's files are in the disk cache
        took = {name: measure(*arguments) for name, arguments in asked.items()}
    for name, one in took.items():
        print(f"{name}: {one.wall_s:.1f} s, {one.cpu_s:.1f} s of CPU, {one.peak_bytes / 1e9:.2f} GB", flush=True)
        if one.wall_s > AIM_S or one.peak_bytes > AIM_BYTES:
            print(f"  above the aim of {AIM_S:g} s and {AIM_BYTES / 1e9:g} GB")
    return [
        f"| {name} | {'' if 'imports' in name else size} | {one.wall_s:.1f} s | {one.cpu_s:.1f} s | "
        f"{one.peak_bytes / 1e9:.2f} GB |"
        for name, one in took.items()
    ]


def main() -> None:
    """Measures, prints, and writes the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    lines = [HEAD, *rows_for(options.rows)]
    if options.write:
        about = (
            f"{options.rows:,} rows of `epoch, step, loss, acc`, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, numpy {np.__version__}, {datetime.date.today()}. The machine's load was "
            f"{os.getloadavg()[0]:.1f} then: above {os.cpu_count()}, the wall time is that of others as well."
        )
        table = f"{START}\n{about}\n\n" + "\n".join(lines) + f"\n{END}"
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(re.sub(f"{START}.*{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
