"""When a live run ends, asked while it runs:  python benchmarks/live_eta.py --data DIR [--write]

Replays every public learning curve that has a clock, row by row, through a growing file, with pauses put in: compiling,
validation again and again, a checkpoint, a long time away, and a restart that repeats steps. At many places after the
first tenth the time that is left is compared with the time that the run then really worked. Takes about a minute.
With --write the tables of docs/live_eta.md are renewed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.curves.status.pace import Pace, pace_of
from traincast.logs.follow import LogFollower
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "live_eta.md"
FILES = ("caffe_resnet_cifar10", "wide_resnet_cifar10", "mlperf_v05", "modded_nanogpt")
VALUES = ("train_loss", "val_loss", "val_acc", "val_metric")
LOOKS = np.arange(0.10, 0.96, 0.05)
TARGET = 0.20
FEWEST_ROWS = 8
FIRST_SEED = 10  # the constants of pace.py were set on pauses of smaller seeds
DENSE = 20  # rows: two in the first tenth
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """A real log with a clock: where its rows are, when they were written, and what they say."""

    name: str
    source: str
    axis: str  # step or epoch
    places: Floats
    seconds: Floats
    cells: tuple[str, ...]

    @property
    def total(self) -> float:
        return float(self.places[-1])


@dataclass(frozen=True, slots=True)
class Line:
    """A row as it is written: where, when, after how much work, and its text."""

    place: float
    wall_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """What happens to a run: its rows as they are written, and the time it really worked until each place."""

    run: Run
    lines: tuple[Line, ...]
    worked_s: Floats  # by row of the run

    @property
    def total_s(self) -> float:
        return float(self.worked_s[-1] - self.worked_s[0])


@dataclass(frozen=True, slots=True)
class Look:
    """One question to a live run. Errors are of the time left, over the total time."""

    source: str
    name: str
    n_rows: int
    progress: float
    error: float
    is_covered: bool
    by_elapsed: float
    by_true_mean: float


def runs_in(folder: Path) -> Iterator[Run]:
    for file in FILES:
        rows: dict[str, list[dict[str, str]]] = {}
        with gzip.open(folder / "curves" / f"{file}.csv.gz", "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if row["seconds"]:
                    rows.setdefault(row["curve_id"], []).append(row)
        for name, own in rows.items():
            axis = "step" if all(row["step"] for row in own) else "epoch"
            places = np.array([float(row[axis]) for row in own])
            is_new = np.r_[True, np.diff(places) > 0]
            own = [row for row, counts in zip(own, is_new, strict=True) if counts]
            if len(own) >= FEWEST_ROWS:
                yield Run(
                    name=name,
                    source=file,
                    axis=axis,
                    places=places[is_new],
                    seconds=np.array([float(row["seconds"]) for row in own]),
                    cells=tuple(",".join(row[value] for value in VALUES) for row in own),
                )


def story_of(run: Run, seed: int) -> Story:
    """Pauses put into a run, at random but the same ones for a seed."""
    random = np.random.default_rng([seed, *run.name.encode()])
    clean_s = run.seconds - run.seconds[0]
    total_s, share = clean_s[-1], (run.places - run.places[0]) / (run.places[-1] - run.places[0])
    n_validations = int(random.integers(10, 61))
    validation_s = random.uniform(0.02, 0.20) * total_s / n_validations
    worked_s = clean_s + validation_s * np.floor(share * n_validations + 1e-9)
    worked_s += random.uniform(0.002, 0.01) * total_s * (share >= random.uniform(0.05, 0.95))  # a checkpoint
    once_s = random.uniform(0.0, 0.02) * total_s * (share > 0)  # compiling
    once_s += random.uniform(0.1, 3.0) * total_s * (share >= random.uniform(0.03, 0.9))  # the machine was away
    died = int(np.searchsorted(share, random.uniform(0.06, 0.9)))
    back = min(max(died - 1 - int(np.searchsorted(share, share[died] - random.uniform(0.01, 0.06))), 1), died - 1)
    gap_s = random.uniform(0.01, 0.5) * total_s
    wall_s = worked_s + once_s
    lines = [_line(run, row, wall_s[row]) for row in range(died)]
    resumed = died - back
    lost_s = wall_s[died - 1] - wall_s[resumed - 1] + gap_s  # work that is done again, and the gap
    lines += [_line(run, row, wall_s[row] + lost_s) for row in range(resumed, len(run.places))]
    return Story(run, tuple(lines), worked_s)


def _line(run: Run, row: int, wall_s: float) -> Line:
    return Line(float(run.places[row]), float(wall_s), f"{run.places[row]:g},{run.cells[row]},{wall_s:.3f}\n")


def looks_at(story: Story, file: Path) -> Iterator[Look | None]:
    """The run is written row by row and looked at on the way; between two rows the last one is all that is known."""
    run = story.run
    file.write_text(f"{run.axis},{','.join(VALUES)},seconds\n", encoding="utf-8")
    follower = LogFollower(file)
    written, pace = 0, None
    shares = np.array([(line.place - run.places[0]) / (run.total - run.places[0]) for line in story.lines])
    highest = np.maximum.accumulate(shares)
    for look in LOOKS:
        due = int(np.searchsorted(highest, look, side="right"))
        if due > written:
            with file.open("a", encoding="utf-8") as out:
                out.writelines(line.text for line in story.lines[written:due])
            written = due
            log = follower.poll()
            pace = pace_of(log) if log is not None else pace
        yield _scored(story, float(look), written, pace)


def _scored(story: Story, look: float, written: int, pace: Pace | None) -> Look | None:
    """None where the log has too few rows for an answer."""
    if pace is None:
        return None
    run, lines, at, step_s = story.run, story.lines[:written], pace.at_step, pace.step_s
    done_s = float(np.interp(at, run.places, story.worked_s - story.worked_s[0]))
    left_s, left = story.total_s - done_s, run.total - at
    spread = float(np.exp(1.2816 * pace.log_sd))
    elapsed_s = lines[-1].wall_s - lines[0].wall_s
    return Look(
        source=run.source,
        name=run.name,
        n_rows=len(run.places),
        progress=look,
        error=(left * step_s - left_s) / story.total_s,
        is_covered=left * step_s / spread <= left_s <= left * step_s * spread,
        by_elapsed=(elapsed_s / max(at - run.places[0], 1e-9) * left - left_s) / story.total_s,
        by_true_mean=(story.total_s / (run.total - run.places[0]) * left - left_s) / story.total_s,
    )


def table_of(looks: Sequence[Look]) -> str:
    groups = {source: [look for look in looks if look.source == source] for source in FILES}
    groups[f"{DENSE} rows or more"] = [look for look in looks if look.n_rows >= DENSE]
    groups[f"fewer than {DENSE} rows"] = [look for look in looks if look.n_rows < DENSE]
    lines = [
        "| runs of | runs | looks | median | p95 | largest | p10-p90 covers | elapsed / progress, p95 "
        "| true mean pace, p95 |",
        "| --- |" + " ---: |" * 8,
    ]
    for name, own in (groups | {"**all**": list(looks)}).items():
        errors = np.abs([look.error for look in own])
        rivals = [
            100 * float(np.quantile(np.abs([getattr(look, rival) for look in own]), 0.95))
            for rival in ("by_elapsed", "by_true_mean")
        ]
        lines.append(
            f"| {name} | {len({look.name for look in own})} | {len(own):,} | {100 * np.median(errors):.1f} % "
            f"| {100 * np.quantile(errors, 0.95):.1f} % | {100 * errors.max():.0f} % "
            f"| {100 * np.mean([look.is_covered for look in own]):.0f} % "
            f"| {rivals[0]:.0f} % | {rivals[1]:.1f} % |"
        )
    return "\n".join(lines)


def progress_table(looks: Sequence[Look]) -> str:
    lines = ["| after | looks | median | p95 | elapsed / progress, p95 |", "| --- |" + " ---: |" * 4]
    for low, high in ((0.1, 0.2), (0.2, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0)):
        own = [look for look in looks if low - 1e-6 <= look.progress < high - 1e-6]
        errors = np.abs([look.error for look in own])
        rival = np.quantile(np.abs([look.by_elapsed for look in own]), 0.95)
        lines.append(
            f"| {100 * low:.0f} to {100 * high:.0f} % | {len(own):,} | {100 * np.median(errors):.1f} % "
            f"| {100 * np.quantile(errors, 0.95):.1f} % | {100 * rival:.0f} % |"
        )
    return "\n".join(lines)


def worst_table(looks: Sequence[Look]) -> str:
    by_run: dict[str, list[float]] = {}
    for look in looks:
        by_run.setdefault(look.name, []).append(abs(look.error))
    worst = sorted(by_run, key=lambda name: -max(by_run[name]))[:10]
    lines = ["| run | median | largest |", "| --- | ---: | ---: |"]
    return "\n".join(
        lines
        + [f"| {name} | {100 * np.median(by_run[name]):.1f} % | {100 * max(by_run[name]):.0f} % |" for name in worst]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with curves/")
    parser.add_argument("--seeds", type=int, default=3, help="different pauses put into each run")
    parser.add_argument("--write", action="store_true", help="renew the tables of docs/live_eta.md")
    given = parser.parse_args()
    asked: list[Look | None] = []
    with tempfile.TemporaryDirectory() as folder:
        for run in runs_in(given.data):
            for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
                file = Path(folder) / f"{seed}.csv"
                file.unlink(missing_ok=True)
                asked += looks_at(story_of(run, seed), file)
    looks = [look for look in asked if look is not None]
    unanswered = f"{len(asked) - len(looks)} of {len(asked):,} looks came before a third row and have no answer."
    tables = {
        "sources": table_of(looks),
        "progress": progress_table(looks),
        "worst": worst_table(looks),
        "unanswered": unanswered,
    }
    print("\n\n".join(tables.values()))
    p95 = float(np.quantile(np.abs([look.error for look in looks]), 0.95))
    print(f"\np95 of all looks: {100 * p95:.1f} % (target: at most {100 * TARGET:.0f} %)")
    if given.write:
        print(f"Wrote {write_file(PAGE, refresh(PAGE.read_text(encoding='utf-8'), tables))}")


if __name__ == "__main__":
    main()
