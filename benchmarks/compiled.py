"""Scores compiled steps: timm's inference runs on an RTX 4090, eager and under torch.compile.

    python benchmarks/compiled.py --data ../shared/data [--traces DIR] [--write]

Ratios are of the time an image: compiled and eager runs were made with other batch sizes. Nothing of the plan is
fitted, so that no family has to be left out of it; the constant ratio that it is held against is the median of
all other families. `--write` puts the tables into docs/compiled.md. Traces come from capture_models.py.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean, median

import traincast as tc
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.trace.file import read_trace

PAGE = Path(__file__).parents[1] / "docs" / "compiled.md"
START, END = "<!-- figures: python benchmarks/compiled.py --data DIR --write -->", "<!-- end of figures -->"
VERSIONS = ("2.4", "2.9")
N_WORST = 10


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run and its forecast."""

    model: str
    size: str
    family: str
    layout: str
    pytorch: str
    compiled: bool
    batch_size: int
    observed_s: float
    predicted_s: float
    is_inside: bool  # of p10 to p90

    @property
    def log_error(self) -> float:
        return log(self.predicted_s / self.observed_s)


@dataclass(frozen=True, slots=True)
class Pair:
    """Compiled over eager, in the time an image, as logarithms."""

    family: str
    pytorch: str
    observed: float
    predicted: float


def read_runs(data: Path, traces: Path) -> Iterator[Run]:
    """All runs whose model was captured."""
    rows: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    with gzip.open(data / "e2e" / "timm_infer_rtx4090.csv.gz", "rt") as stream:
        for row in csv.DictReader(stream):
            rows[row["model"], row["img_size"]].append(row)
    for (model, size), group in rows.items():
        path = traces / f"timm-inference--{model}--{size}.trace"
        if path.exists():
            trace = read_trace(path)
            yield from (_forecast(trace, row) for row in group)


def _forecast(trace: tc.Trace, row: dict[str, str]) -> Run:
    found = tc.forecast(
        trace,
        row["gpu"],
        int(row["batch_size"]),
        precision=row["precision"],
        layout=row["layout"],
        compiled=row["torch_compile"] == "1",
    )
    low_s, high_s = found.interval("step_s")
    observed_s = float(row["step_ms"]) * 1e-3
    return Run(
        model=row["model"],
        size=row["img_size"],
        family=row["family"],
        layout=row["layout"],
        pytorch=row["pytorch"],
        compiled=row["torch_compile"] == "1",
        batch_size=int(row["batch_size"]),
        observed_s=observed_s,
        predicted_s=found.step_s,
        is_inside=low_s <= observed_s <= high_s,
    )


def pairs_of(runs: list[Run]) -> list[Pair]:
    """The models that were run both ways in nchw by one version of PyTorch."""
    found: dict[tuple[str, str, str], dict[bool, Run]] = defaultdict(dict)
    for run in runs:
        if run.layout == "nchw":
            found[run.model, run.size, run.pytorch][run.compiled] = run
    both = [(pair[False], pair[True]) for pair in found.values() if len(pair) == 2]
    return [
        Pair(
            eager.family,
            eager.pytorch,
            log(compiled.observed_s / compiled.batch_size * eager.batch_size / eager.observed_s),
            log(compiled.predicted_s / compiled.batch_size * eager.batch_size / eager.predicted_s),
        )
        for eager, compiled in both
    ]


def constant_ratio_errors(pairs: list[Pair]) -> list[float]:
    """Of the median ratio of all other families."""
    errors = []
    for family in {pair.family for pair in pairs}:
        others = median(pair.observed for pair in pairs if pair.family != family)
        errors += [others - pair.observed for pair in pairs if pair.family == family]
    return errors


def _percent(log_errors: list[float]) -> str:
    sizes = [abs(exp(error) - 1) for error in log_errors]
    return f"{100 * median(sizes):.1f} | {100 * mean(sizes):.1f} | {100 * (exp(median(log_errors)) - 1):+.1f}"


def step_table(runs: list[Run]) -> list[str]:
    lines = [
        "| steps | PyTorch | runs | median error (%) | mean error (%) | bias (%) | within p10 to p90 (%) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[bool, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.compiled, run.layout, run.pytorch].append(run)
    for (compiled, layout, version), group in sorted(groups.items()):
        inside = 100 * mean(run.is_inside for run in group)
        name = f"{'compiled' if compiled else 'eager'}, {layout}"
        figures = _percent([run.log_error for run in group])
        lines.append(f"| {name} | {version} | {len(group)} | {figures} | {inside:.0f} |")
    return lines


def ratio_table(pairs: list[Pair]) -> list[str]:
    lines = [
        "| compiled over eager | PyTorch | pairs | median error (%) | mean error (%) | bias (%) |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for version in VERSIONS:
        own = [pair for pair in pairs if pair.pytorch == version]
        ours = _percent([pair.predicted - pair.observed for pair in own])
        lines.append(f"| traincast | {version} | {len(own)} | {ours} |")
        lines.append(f"| one ratio for all | {version} | {len(own)} | {_percent(constant_ratio_errors(own))} |")
    return lines


def family_table(pairs: list[Pair]) -> list[str]:
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.family].append(pair)
    rows = [
        (name, len(own), median(pair.observed for pair in own), median(pair.predicted for pair in own))
        for name, own in groups.items()
    ]
    rows.sort(key=lambda row: -abs(row[3] - row[2]))
    lines = ["| worst families | pairs | ratio measured | forecast |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {n} | {exp(seen):.2f} | {exp(said):.2f} |" for name, n, seen, said in rows[:N_WORST]]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    runs = list(read_runs(asked.data, asked.traces))
    pairs = pairs_of(runs)
    text = "\n".join([*step_table(runs), "", *ratio_table(pairs), "", *family_table(pairs)])
    print(text)
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
