"""MirroredStrategy on two P100:  python benchmarks/mirrored_runs.py --data DIR [--write]

A course project trained three Keras networks on two GPUs. PatchCamelyon is scored with one factor that is fitted at
batch 16 a replica, MNIST and CIFAR-10 with nothing fitted on runs of two GPUs. Everything else comes from elsewhere:
device times from our kernels, the link from links.csv, the host from hosts.csv. With --write the tables of
docs/mirrored.md and its chart are renewed (the chart needs the extra png).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import checkout  # noqa: F401 - finds lab
import keras_runs
import mirrored_small
from lab.markdown import refresh
from mirrored_link import link_table
from mirrored_step import HOST, PAIR, error_cell, errors, slower_host, step_of
from traincast.report.chart import Chart, Series
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.scaling.collectives import Wire
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import ParallelStep
from traincast.scaling.stragglers import waiting_share
from traincast.trace.graph import Floats

DOCS = Path(__file__).parents[1] / "docs"
MODEL = "patchcamelyon_cnn"
N_IMAGES = 262_144
FITTED_BATCH = 16  # of one replica
FIVE = (8, 16, 32, 48, 64)  # those that the project predicted
BETWEEN_SOCKETS = Network(Wire(5.7e-6, 6e9), None, (2,))  # the rate that NCCL expects of QPI (src/graph/topo.h)
Predict = Callable[[float], Floats]


def main() -> None:
    """Predicts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with seeds/ and layers/")
    parser.add_argument("--write", action="store_true", help="write docs/mirrored.md and its chart")
    options = parser.parse_args()
    seeds = options.data / "seeds"
    runs = read_runs(seeds)
    ways = predictions(runs)
    tables = {
        "patchcamelyon": batch_table(runs, ways),
        "patchcamelyon errors": error_table(runs, ways),
        "choices": choice_table(runs, keras_runs.fit(seeds).feed_s_per_byte),
        "link": link_table(options.data / "layers"),
        **mirrored_small.tables(seeds),
    }
    print("\n\n".join(tables.values()))
    if options.write:
        write_file(DOCS / "mirrored.md", refresh((DOCS / "mirrored.md").read_text(encoding="utf-8"), tables))
        write_file(DOCS / "images" / "mirrored_patchcamelyon.png", to_png(chart(runs, ways)))
        print(f"Wrote {DOCS / 'mirrored.md'} and its chart")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Runs:
    """Seconds of a step by batch size of one replica; nan where the project has no figure."""

    batches: tuple[int, ...]
    measured_s: Floats  # two GPUs, mean of epochs 2 to 4
    one_gpu_s: Floats  # measured
    project_s: Floats  # with its constant 1.5
    project_sum_s: Floats  # without

    def at(self, batches: Sequence[int]) -> list[int]:
        return [self.batches.index(batch) for batch in batches]


def read_runs(seeds: Path) -> Runs:
    epochs: dict[int, list[float]] = {}
    for row in keras_runs.read(seeds / "mirrored_patchcamelyon.csv"):
        if row["epoch"] != "1":  # it holds the start
            epochs.setdefault(int(row["batch_per_replica"]), []).append(float(row["epoch_time_s"]))
    alone = {int(row["batch_per_gpu"]): row for row in keras_runs.read(seeds / "patchcamelyon_single_vs_mirrored.csv")}
    theirs = keras_runs.read(seeds / "patchcamelyon_full_model_predictions.csv")
    project = {int(row["batch_per_replica"]): row for row in theirs}

    def column(table: dict[int, dict[str, str]], name: str, n_gpus: int) -> Floats:
        found = [float(table[batch][name]) if batch in table else np.nan for batch in epochs]
        return np.array(found) / [n_steps(batch, n_gpus) for batch in epochs]

    return Runs(
        batches=tuple(epochs),
        measured_s=np.array([np.mean(times) / n_steps(batch, 2) for batch, times in epochs.items()]),
        one_gpu_s=column(alone, "single_gpu_epoch_s", 1),
        project_s=column(project, "predicted_epoch_s_with_factor_1_5", 2),
        project_sum_s=column(project, "predicted_epoch_s", 2),
    )


def n_steps(batch: int, n_gpus: int) -> int:
    return -(-N_IMAGES // (n_gpus * batch))


def ours(runs: Runs, factor: float, network: Network = PAIR) -> ParallelStep:
    return step_of(MODEL, "adam", runs.batches, slower_host(HOST, call=factor, dispatch=factor), network)


def fit(runs: Runs, predict: Predict, batch: int = FITTED_BATCH) -> float | None:
    """The factor with which a prediction is right at one batch size, if there is one."""
    place = runs.batches.index(batch)
    left = [float(predict(factor)[place] - runs.measured_s[place]) for factor in (0.0, 100.0)]
    if left[0] > 0 or left[1] < 0:
        return None
    return float(brentq(lambda factor: predict(factor)[place] - runs.measured_s[place], 0.0, 100.0))


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Way:
    """One way to predict the runs."""

    name: str
    fitted_on: str
    seconds: Floats


def predictions(runs: Runs) -> dict[str, Way]:
    """Ours by both readings of "one host factor", and what to compare them with."""
    plain, at_16 = ours(runs, 1.0), f"batch {FITTED_BATCH}"

    def fitted(name: str, predict: Predict) -> Way:
        factor = fit(runs, predict)
        assert factor is not None
        return Way(name=f"{name} ({factor:.2f})", fitted_on=at_16, seconds=predict(factor))

    def from_one_gpu(factor: float) -> Floats:
        """The measured step of one GPU, and what we say that a second one adds: its host's work, the link, waiting."""
        return (1 + waiting_share(2)) * (runs.one_gpu_s + factor * HOST.call_s) + plain.communication_s

    def best(name: str, seconds: Floats) -> Way:
        factor = best_factor(runs, seconds)
        return Way(name=f"{name} ({factor:.2f})", fitted_on="all five", seconds=factor * seconds)

    return {
        "host": fitted("**ours, factor on the host's time**", lambda factor: ours(runs, factor).step_s),
        "step": fitted("**ours, factor on the whole step**", lambda factor: factor * plain.step_s),
        "plain": Way(name="ours, no factor", fitted_on="nothing", seconds=plain.step_s),
        "best": best("ours, best factor on the whole step", plain.step_s),
        "project": Way(name="project, constant 1.5", fitted_on="all five", seconds=runs.project_s),
        "sum": Way(name="project, no constant", fitted_on="nothing", seconds=runs.project_sum_s),
        "one": Way(name="measured step of one GPU", fitted_on="nothing", seconds=runs.one_gpu_s),
        "one factor": fitted("measured step of one GPU, a factor", lambda factor: factor * runs.one_gpu_s),
        "one best": best("measured step of one GPU, best factor", runs.one_gpu_s),
        "added": Way(name="measured step of one GPU, and our second", fitted_on="nothing", seconds=from_one_gpu(1.0)),
        "added host": fitted("the same, factor on the host's time", from_one_gpu),
    }


def best_factor(runs: Runs, seconds: Floats) -> float:
    """Least mean error over the five batches, with hindsight: it is exact for one of them."""
    five = runs.at(FIVE)
    ratios = runs.measured_s[five] / seconds[five]
    return float(min(ratios, key=lambda ratio: np.abs(errors(ratio * seconds[five], runs.measured_s[five])).mean()))


def batch_table(runs: Runs, ways: dict[str, Way]) -> str:
    header = ("no factor", "factor on the host", "factor on the step", "project, 1.5", "one GPU, measured")
    lines = [f"| batch of a replica | measured | {' | '.join(header)} |", "| ---: |" + " ---: |" * (len(header) + 1)]
    shown = [ways[name].seconds for name in ("plain", "host", "step", "project", "one")]
    for place, batch in enumerate(runs.batches):
        measured_s = float(runs.measured_s[place])
        cells = [error_cell(float(seconds[place]), measured_s) for seconds in shown]
        mark = " (fitted)" if batch == FITTED_BATCH else ""
        lines.append(f"| {batch}{mark} | {1e3 * measured_s:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def error_table(runs: Runs, ways: dict[str, Way]) -> str:
    lines = [
        "| prediction (its factor) | fitted on | mean of five | without batch 16 | batch 40 and 80 | largest of five |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    others = [batch for batch in FIVE if batch != FITTED_BATCH]
    further = [batch for batch in runs.batches if batch not in FIVE]
    for way in ways.values():
        means = [mean_error(runs, way.seconds, batches) for batches in (FIVE, others, further)]
        five = runs.at(FIVE)
        largest = 100 * np.abs(errors(way.seconds[five], runs.measured_s[five])).max()
        shown = ["" if np.isnan(mean) else f"{mean:.1f} %" for mean in means]
        lines.append(f"| {way.name} | {way.fitted_on} | {' | '.join(shown)} | {largest:.1f} % |")
    return "\n".join(lines)


def mean_error(runs: Runs, seconds: Floats, batches: Sequence[int]) -> float:
    places = runs.at(batches)
    return float(100 * np.abs(errors(seconds[places], runs.measured_s[places])).mean())


def choice_table(runs: Runs, feed_s_per_byte: float) -> str:
    """The factor on the host's time again, with other choices than ours."""
    fed_s = feed_s_per_byte * keras_runs.SAMPLE_BYTES[MODEL] * np.array(runs.batches)

    def with_two_dispatches(factor: float) -> Floats:
        return step_of(MODEL, "adam", runs.batches, slower_host(HOST, call=factor, dispatch=2 * factor)).step_s

    choices: list[tuple[str, Predict, int]] = [
        (f"fitted on batch {batch}", lambda factor: ours(runs, factor).step_s, batch) for batch in FIVE
    ]
    choices += [
        ("6 GB/s, as between sockets", lambda factor: ours(runs, factor, BETWEEN_SOCKETS).step_s, FITTED_BATCH),
        ("dispatches too count once a replica", with_two_dispatches, FITTED_BATCH),
        ("feeding is not hidden", lambda factor: ours(runs, factor).step_s + fed_s, FITTED_BATCH),
    ]
    lines = ["| choice | factor | mean of five | without the fitted one |", "| --- | ---: | ---: | ---: |"]
    for name, predict, batch in choices:
        factor = fit(runs, predict, batch)
        if factor is None:
            lines.append(f"| {name} | no fit | | |")
            continue
        others = [other for other in FIVE if other != batch]
        means = [mean_error(runs, predict(factor), batches) for batches in (FIVE, others)]
        lines.append(f"| {name} | {factor:.2f} | {means[0]:.1f} % | {means[1]:.1f} % |")
    return "\n".join(lines)


def chart(runs: Runs, ways: dict[str, Way]) -> Chart:
    five = runs.at(FIVE)
    lines = {
        "measured": runs.measured_s,
        "ours, factor on the host": ways["host"].seconds,
        "ours, factor on the step": ways["step"].seconds,
        "ours, no factor": ways["plain"].seconds,
        "the project, constant 1.5": runs.project_s,
    }
    return Chart(
        title="PatchCamelyon on two P100, MirroredStrategy",
        kind="line",
        series=tuple(Series(name=name, x=list(FIVE), y=values[five].tolist()) for name, values in lines.items()),
        x_label="batch size of a replica",
        y_label="step",
        y_show="duration",
    )


if __name__ == "__main__":
    main()
