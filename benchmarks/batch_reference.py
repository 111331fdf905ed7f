"""Samples to a target at a larger batch, nothing measured:  python benchmarks/batch_reference.py --data DIR [--write]

MLPerf's reference runs, each benchmark left out of the two numbers. With --write docs/batch_reference.md is made.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.markdown import percent, table
from lab.refit.curves.batches import Pair, fit_usual_batch, pairs_of
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "batch_reference.md"
_INTRO = """
# Samples to a target at a larger batch, nothing measured

Written by `python benchmarks/batch_reference.py --data DIR --write` on {when}. MLPerf's reference runs tell at which
batch size how many samples (or epochs) reach the target. From the smaller batch of each of {n} pairs the larger one's
samples are told by [the law of the noise scale](batch_efficiency.md) with the ratio of noise scale to batch that the
other benchmarks have ({ratio:.1f}, give or take a factor of {factor:.0f}); the benchmark that is scored has no part in
it. `tc.at_batch(status, batch)` without a noise scale says this. Medians of |error| in percent; *inside* is the share
of pairs in p10 to p90.
"""
_TWO = """
## Beside a noise scale that was measured

Where a benchmark has three batch sizes and more, the noise scale that follows from its two smallest is the one that
was measured for this very workload (MLPerf publishes no gradients). Both tell the larger ones from the second.
"""
_KNOWN = """
MLPerf retunes the learning rate at every batch size, within its rules; a run that does not needs more. Stable
Diffusion's reference runs needed fewer samples from 512 to 2,048, which no noise scale tells. What medical
segmentation (unet3d) needs hardly depends on the batch, and its interval is too narrow: **missed**.
"""


def needed(ratio: float, growth: float) -> float:
    return (ratio + growth) / (ratio + 1.0)


def rows_of(pairs: Sequence[Pair]) -> list[list[float]]:
    """By benchmark: n, ours, same samples, same steps, inside."""
    rows = {}
    for name in sorted({pair.benchmark for pair in pairs}):
        usual = fit_usual_batch([pair for pair in pairs if pair.benchmark != name])
        errors = []
        for pair in (pair for pair in pairs if pair.benchmark == name):
            told = usual.samples_needed(pair.growth)
            errors.append(
                [abs(guess / pair.needed - 1.0) for guess in (told.p50, 1.0, pair.growth)]
                + [float(told.p10 <= pair.needed <= told.p90)]
            )
        each = np.array(errors)
        rows[name] = [float(len(each)), *np.median(each[:, :3], axis=0).tolist(), float(each[:, 3].mean())]
    return [[*row, name] for name, row in rows.items()]  # type: ignore[list-item]


def beside_measured(pairs: Sequence[Pair]) -> tuple[int, list[float]]:
    """Benchmarks, and means of their medians: by two batch sizes, by other benchmarks, same samples."""
    of_runs: dict[tuple[str, str], dict[float, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for pair in pairs:
        of_runs[pair.benchmark, pair.version][pair.batch][pair.growth] = pair.needed
    errors: dict[str, list[list[float]]] = defaultdict(list)
    for (name, _), batches in of_runs.items():
        sizes = sorted(batches)
        if len(sizes) < 2:
            continue
        step, grew = min(batches[sizes[0]].items())
        measured = max((step - grew) / (grew - 1.0), 0.0) / step if grew > 1 else np.inf  # in the second batch
        usual = fit_usual_batch([pair for pair in pairs if pair.benchmark != name])
        for growth, true in batches[sizes[1]].items():
            by_two = 1.0 if np.isinf(measured) else needed(measured, growth)
            guesses = (by_two, usual.samples_needed(growth).p50, 1.0)
            errors[name].append([abs(guess / true - 1.0) for guess in guesses])
    return len(errors), np.mean([np.median(each, axis=0) for each in errors.values()], axis=0).tolist()


def page(pairs: Sequence[Pair]) -> str:
    rows, usual = rows_of(pairs), fit_usual_batch(pairs)
    lines = [(str(row[5]), f"{row[0]:.0f}", *(percent(float(value)) for value in row[1:5])) for row in rows]
    mean = np.mean([row[1:5] for row in rows], axis=0)
    lines.append((f"**mean over {len(rows)} benchmarks**", f"{len(pairs)}", *(percent(float(v)) for v in mean)))
    n_measured, measured = beside_measured(pairs)
    header = ("benchmark", "n", "ours", "same samples", "same steps", "inside %")
    other = ("", "benchmarks", "by its two smallest batches", "ours", "same samples")
    intro = _INTRO.format(when=date.today(), n=len(pairs), ratio=usual.ratio, factor=np.exp(usual.log_sd))
    return "\n\n".join(
        [
            intro.strip(),
            table(header, lines),
            _TWO.strip(),
            table(other, [("mean of medians", str(n_measured), *(percent(value) for value in measured))]),
            "## What to know",
            _KNOWN.strip(),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write docs/batch_reference.md")
    options = parser.parse_args()
    text = page(pairs_of(options.data)) + "\n"
    print(text)
    if options.write:
        write_file(PAGE, text)


if __name__ == "__main__":
    main()
