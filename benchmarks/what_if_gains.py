"""Gains that people measured beside those that we predict:  python benchmarks/what_if_gains.py --data DIR [--write]

DIR holds `e2e/` (Lambda's training throughputs; timm on RTX 3090) and `distributed/` (Pollux' steps on T4). Each gain
is that of one change on one device: a lower precision, another layout, a batch of about twice the size. With --write
the table goes to docs/explain.md.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import checkout  # noqa: F401 - finds lab
import traincast as tc
from lab.markdown import refresh
from traincast.errors import TraincastError
from traincast.planning.gain import (
    DOUBLED_BATCH_LOG_SD,
    LAYOUT_LOG_SD,
    PRECISION_LOG_SD,
    ForecastWithErrors,
    Gain,
    ask,
    gain_of,
)
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "explain.md"
_LAMBDA = {  # Lambda's name -> ours, its optimizer, and the label of its rows in mixed precision
    "resnet50": ("resnet50", "momentum", "AMP"),
    "bert_base_squad": ("bert-base", "adam", "FP16"),
    "bert_large_squad": ("bert-large", "adam", "FP16"),
}
_TIMM = ("densenet121", "inception_v3", "vgg11", "vgg16", "vgg19")
_POLLUX = {
    "cifar10": ("cifar_resnet18", "fp32", "momentum"),
    "imagenet": ("resnet50", "amp-fp16", "momentum"),
    "bert": ("bert-base", "fp32", "adamw"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One change: what it brought, and what we say that it brings."""

    change: str
    source: str
    measured: float
    gain: Gain

    @property
    def error(self) -> float:
        return self.gain.speedup / self.measured - 1

    @property
    def is_inside(self) -> bool:
        return self.gain.low <= self.measured <= self.gain.high


def main() -> None:
    """Prints the table, and writes it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with e2e/ and distributed/")
    parser.add_argument("--write", action="store_true", help="write docs/explain.md")
    options = parser.parse_args()
    rows = [*precision_rows(options.data), *layout_rows(options.data), *batch_rows(options.data)]
    told = table(rows)
    print(told)
    if options.write:
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), {"gains": told}))


def precision_rows(data: Path) -> Iterator[Row]:
    """Mixed precision over fp32, or tf32 where the card has it, each at the batch that Lambda ran."""
    by_run: dict[tuple[str, ...], dict[str, dict[str, str]]] = defaultdict(dict)
    for row in _read(data / "e2e" / "lambda.csv"):
        if row["num_gpus"] == "1" and not row["flag"] and row["model"] in _LAMBDA:
            by_run[row["gpu"], row["model"], row["suite"], row["system"]][row["precision_tag"]] = row
    for (gpu, model, *_), found in by_run.items():
        name, optimizer, label = _LAMBDA[model]
        if "FP32" not in found or label not in found:
            continue
        low, high = found["FP32"], found[label]
        own = "tf32" if low["tf32_allowed"] == "1" else "fp32"
        try:
            before, after = (
                asked(name, gpu, int(row["batch_size"]), precision, optimizer)
                for row, precision in ((low, own), (high, "amp-fp16"))
            )
        except TraincastError:  # a card that is not in our table
            continue
        measured = float(high["throughput"]) / float(low["throughput"])
        gain = gain_of(before, after, other_kernels=True, own_log_sd=PRECISION_LOG_SD)
        yield Row(f"{own} to amp-fp16, {name}", "Lambda", measured, gain)


def layout_rows(data: Path) -> Iterator[Row]:
    """Channels-last over the usual layout, in amp-fp16."""
    by_model: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in _read(data / "e2e" / "timm_train_rtx3090.csv"):
        if row["model"] in _TIMM:
            by_model[row["model"], row["batch_size"]][row["layout"]] = float(row["samples_per_s"])
    for (model, batch), speed in by_model.items():
        if len(speed) < 2:
            continue
        before, after = (
            asked(model, "RTX-3090", int(batch), "amp-fp16", "momentum", layout) for layout in ("nchw", "nhwc")
        )
        gain = gain_of(before, after, other_kernels=True, own_log_sd=LAYOUT_LOG_SD)
        yield Row("channels-last, 5 image models", "timm, RTX 3090", speed["nhwc"] / speed["nchw"], gain)


def batch_rows(data: Path) -> Iterator[Row]:
    """A batch over one that is about half of it."""
    steps: dict[str, dict[int, float]] = defaultdict(dict)
    for row in _read(data / "distributed" / "pollux_t4_steps.csv"):
        if row["num_gpus"] == "1" and row["app"] in _POLLUX:
            steps[row["app"]][int(row["local_batch"])] = float(row["step_time_s"])
    for app, found in steps.items():
        model, precision, optimizer = _POLLUX[app]
        sizes = sorted(found)
        for size in sizes:
            larger = next((other for other in sizes if other >= 2 * size), None)
            if larger is None or larger > 2.2 * size:
                continue
            before, after = (asked(model, "T4", batch, precision, optimizer) for batch in (size, larger))
            measured = (larger / found[larger]) / (size / found[size])
            gain = gain_of(before, after, own_log_sd=DOUBLED_BATCH_LOG_SD)
            yield Row(f"twice the batch, {model}", "Pollux, T4", measured, gain)


@cache
def asked(model: str, gpu: str, batch: int, precision: str, optimizer: str, layout: str = "nchw") -> ForecastWithErrors:
    forecast = tc.forecast(trace(model), gpu, batch, precision=precision, optimizer=optimizer, layout=layout)
    return ask(forecast.question)


@cache
def trace(model: str) -> tc.Trace:
    return tc.load_model(model)


def table(rows: list[Row]) -> str:
    """One line a change and source."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.change, row.source].append(row)
    lines = [
        "| change | source | n | measured | predicted | median error of the gain | bias | inside p10 to p90 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (change, source), own in groups.items():
        cells = (
            change,
            source,
            str(len(own)),
            f"x {statistics.median(row.measured for row in own):.2f}",
            f"x {statistics.median(row.gain.speedup for row in own):.2f}",
            f"{100 * statistics.median(abs(row.error) for row in own):.1f} %",
            f"{100 * statistics.median(row.error for row in own):+.1f} %",
            f"{100 * sum(row.is_inside for row in own) / len(own):.0f} %",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
