"""Epochs at another batch size:  python benchmarks/batch_efficiency.py --data DIR [--write]

Pollux' runs: per epoch the metric and the gradient's signal and noise, at several fixed batch sizes. From one run,
the samples to a target at each other batch size. With --write docs/batch_efficiency.md is renewed, and its images.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.curves.batch_efficiency import epochs_at_batch, noise_scale
from traincast.report.chart import Chart, Series
from traincast.report.files import write_file
from traincast.report.png import to_png

DOCS = Path(__file__).parents[1] / "docs"
FALLING = ("deepspeech2", "yolov3")  # error rate and loss; the others' metrics rise
LEVELS = (0.5, 0.8, 0.95)  # of the way from the best first to the worst best metric of the batch sizes
GROWTHS = (2, 4, 8, 16, 32)
METHODS = ("noise scale", "same epochs", "same steps")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Run:
    """Samples seen, best metric so far and noise scale at the end of each row."""

    batch_size: int
    n_samples: Floats
    best: Floats
    noise: Floats

    def stretches_to(self, target: float) -> tuple[Floats, Floats]:
        """Samples of each row until the target, and the noise scale there; the last row only as far as needed."""
        last = int(np.argmax(self.best >= target))
        ends = np.concatenate([[0.0], self.n_samples[: last + 1]])
        if last > 0:
            share = (target - self.best[last - 1]) / (self.best[last] - self.best[last - 1])
            ends[-1] = ends[-2] + share * (ends[-1] - ends[-2])
        return np.diff(ends), self.noise[: last + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """Samples to a target at one batch size, from a run at another."""

    app: str
    level: float
    source: int
    batch_size: int
    measured: float
    predicted: dict[str, float]

    def error(self, method: str) -> float:
        return self.predicted[method] / self.measured - 1


def main() -> None:
    """Predicts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with distributed/")
    parser.add_argument("--write", action="store_true", help="write docs/batch_efficiency.md and its images")
    options = parser.parse_args()
    apps = read_runs(options.data / "distributed" / "pollux_gradient_statistics.csv")
    guesses = [guess for app, runs in apps.items() for guess in guesses_of(app, runs)]
    smallest = {app: runs[0].batch_size for app, runs in apps.items()}
    up = [guess for guess in guesses if guess.source == smallest[guess.app]]
    tables = {
        "all": error_table(guesses),
        "up": error_table(up),
        "growth": growth_table(guesses, smallest),
        "levels": level_table(guesses),
        "noise": noise_table(apps),
    }
    print("\n\n".join(f"{name}\n{text}" for name, text in tables.items()))
    if options.write:
        page = DOCS / "batch_efficiency.md"
        write_file(page, refresh(page.read_text(encoding="utf-8"), tables))
        for name, chart in {"batch_epochs": epochs_chart(up), "batch_errors": error_chart(guesses)}.items():
            write_file(DOCS / "images" / f"{name}.png", to_png(chart))


def read_runs(path: Path) -> dict[str, list[Run]]:
    rows: dict[str, dict[int, list[dict[str, str]]]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rows.setdefault(row["app"], {}).setdefault(int(row["batch_size"]), []).append(row)
    return {app: [_run(app, batch, of[batch], min(of)) for batch in sorted(of)] for app, of in sorted(rows.items())}


def _run(app: str, batch_size: int, rows: Sequence[dict[str, str]], base: int) -> Run:
    """The variance is taken as that of the app's smallest batch size: with it AdaScale's gain is that of the table."""

    def column(name: str) -> Floats:
        return np.array([float(row[name]) for row in rows])

    metric = -column("metric") if app in FALLING else column("metric")
    return Run(
        batch_size=batch_size,
        n_samples=column("iteration") * batch_size,
        best=np.maximum.accumulate(metric),
        noise=noise_scale(column("grad_sqr"), column("grad_var"), at_batch=base),
    )


def guesses_of(app: str, runs: Sequence[Run]) -> Iterator[Guess]:
    start, end = max(run.best[0] for run in runs), min(run.best[-1] for run in runs)
    for level in LEVELS:
        target = start + level * (end - start)
        measured = {run.batch_size: float(run.stretches_to(target)[0].sum()) for run in runs}
        for run in runs:
            samples, noise = run.stretches_to(target)
            for batch_size in measured:
                if batch_size == run.batch_size:
                    continue
                ours = epochs_at_batch(samples, batch_size, at_batch=run.batch_size, noise_scale=noise).sum()
                yield Guess(
                    app=app,
                    level=level,
                    source=run.batch_size,
                    batch_size=batch_size,
                    measured=measured[batch_size],
                    predicted={
                        "noise scale": float(ours),
                        "same epochs": measured[run.batch_size],
                        "same steps": measured[run.batch_size] * batch_size / run.batch_size,
                    },
                )


def error_table(guesses: Sequence[Guess]) -> str:
    """Median |error| and, for ours and the same epochs, the median error with its sign."""
    rows = []
    for app in [*dict.fromkeys(guess.app for guess in guesses), "all but bert"]:
        chosen = [guess for guess in guesses if guess.app == app or (app == "all but bert" and guess.app != "bert")]
        cells = [percent(median_error(chosen, method)) for method in METHODS]
        signs = [
            f"{100 * float(np.median([guess.error(method) for guess in chosen])):+.0f} %" for method in METHODS[:2]
        ]
        rows.append((app, f"{len(chosen):,}", *cells, *signs))
    header = ("app", "n", *METHODS, "sign: noise scale", "sign: same epochs")
    return table(header, rows)


def growth_table(guesses: Sequence[Guess], smallest: dict[str, int]) -> str:
    """Median |error| of the same step up, from the smallest batch and from the others; without BERT."""
    rows = []
    for growth in GROWTHS:
        up = [guess for guess in guesses if guess.batch_size == growth * guess.source and guess.app != "bert"]
        cells = []
        for is_smallest in (True, False):
            chosen = [guess for guess in up if (guess.source == smallest[guess.app]) == is_smallest]
            cells += [str(len(chosen)), *(percent(median_error(chosen, method)) for method in METHODS[:2])]
        rows.append((str(growth), *cells))
    columns = ("n", *METHODS[:2])
    return table(
        (
            "times the batch",
            f"from the smallest: {columns[0]}",
            *columns[1:],
            f"from others: {columns[0]}",
            *columns[1:],
        ),
        rows,
    )


def level_table(guesses: Sequence[Guess]) -> str:
    """Median |error| by target: early targets are the hard ones."""
    rows = []
    for app in dict.fromkeys(guess.app for guess in guesses):
        cells = []
        for level in LEVELS:
            chosen = [guess for guess in guesses if guess.app == app and guess.level == level]
            cells.append(" / ".join(percent(median_error(chosen, method)) for method in METHODS[:2]))
        rows.append((app, *cells))
    return table(("app: noise scale / same epochs", *(f"{level:.0%} of the way" for level in LEVELS)), rows)


def noise_table(apps: dict[str, list[Run]]) -> str:
    """The noise scale a tenth into the run and at its end, at the smallest and the largest batch size."""
    rows = []
    for app, runs in apps.items():
        cells = []
        for run in (runs[0], runs[-1]):
            cells += [
                f"{run.noise[len(run.noise) // 10]:.3g}",
                f"{np.median(run.noise[-max(1, len(run.noise) // 10) :]):.3g}",
            ]
        rows.append((app, str(runs[0].batch_size), *cells[:2], str(runs[-1].batch_size), *cells[2:]))
    return table(("app", "batch", "noise scale early", "late", "batch", "noise scale early", "late"), rows)


def median_error(guesses: Sequence[Guess], method: str) -> float:
    return float(np.median([abs(guess.error(method)) for guess in guesses]))


def epochs_chart(up: Sequence[Guess]) -> Chart:
    """Epochs to the last target over those of the smallest batch: measured, and predicted from the smallest."""
    series = []
    for app in ("cifar10", "imagenet", "yolov3"):
        chosen = [guess for guess in up if guess.app == app and guess.level == LEVELS[-1]]
        growth = [guess.batch_size / guess.source for guess in chosen]
        base = [guess.predicted["same epochs"] for guess in chosen]
        measured = [guess.measured / one for guess, one in zip(chosen, base, strict=True)]
        predicted = [guess.predicted["noise scale"] / one for guess, one in zip(chosen, base, strict=True)]
        series.append(Series(name=f"{app}, measured", x=growth, y=measured))
        series.append(Series(name=f"{app}, from its smallest batch", x=growth, y=predicted))
    return Chart(
        title="Epochs to 95 % of the way, over those at the smallest batch",
        kind="line",
        series=tuple(series),
        x_label="batch size over the smallest",
        y_label="epochs over those at the smallest",
        log_x=True,
    )


def error_chart(guesses: Sequence[Guess]) -> Chart:
    apps = list(dict.fromkeys(guess.app for guess in guesses))
    series = tuple(
        Series(
            name=method, x=apps, y=[median_error([each for each in guesses if each.app == app], method) for app in apps]
        )
        for method in METHODS
    )
    return Chart(
        title="Samples to a target at another batch size",
        kind="bar",
        series=series,
        x_label="app",
        y_label="median error",
        y_show="percent",
    )


def percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


if __name__ == "__main__":
    main()
