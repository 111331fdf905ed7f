"""How well does accuracy follow from loss?  python benchmarks/accuracy_from_loss.py --data DIR [--write]

Every run is left out in turn: the relation is learned from its siblings, or from a few accuracies of its own first
half, and scored on its final accuracy. With --write the tables of docs/accuracy_from_loss.md are renewed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.api.converging import converge
from traincast.api.logs import read_logs
from traincast.curves.loss_relation import learn_relation, pairs_of
from traincast.logs.log import Log, Series
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "accuracy_from_loss.md"
SHARE = 0.5  # of a run that is seen
N_SPARSE = 5  # accuracies of the seen part that a sparse log has
# Which runs are siblings, which loss and which accuracy they have, and their learning rate.
CAFFE, STAIRS = "curves/caffe_resnet_cifar10.csv.gz", "1,0.1@32000,0.01@48000"
TORCH7, TORCH7_STAIRS = "curves/wide_resnet_cifar10.csv.gz", "1,0.2@23400,0.04@46800,0.008@62400"
RESNEXT, RESNEXT_STAIRS = "curves/resnext_cifar.csv.gz", "1,0.1@58650,0.01@87975"
FIVE_EPOCHS = "seeds/rtx8000_resnet18_cifar10_curves.csv"
GROUPS = {
    "ResNet-20 and -32, CIFAR-10 (caffe), validation loss": (CAFFE, "validation", STAIRS),
    "the same, training loss of single batches": (CAFFE, "train", STAIRS),
    "VGG and ResNet, CIFAR-10 (Torch7), training loss": (TORCH7, "train", TORCH7_STAIRS),
    "ResNeXt-29, CIFAR-100, validation loss": (RESNEXT, "validation", RESNEXT_STAIRS),
    "ResNet-18, CIFAR-10, 5 epochs, training loss and accuracy": (FIVE_EPOCHS, "train", None),
}


@dataclass(frozen=True)
class Score:
    """One run: its final accuracy and what was said about it, as median, p10 and p90."""

    group: str
    way: str
    real: float
    found: tuple[float, float, float]

    @property
    def points(self) -> float:
        return 100 * abs(self.found[0] - self.real)

    @property
    def is_inside(self) -> bool:
        return self.found[1] <= self.real <= self.found[2]


def final(series: Series) -> float:
    """The mean of the last fiftieth."""
    return float(np.mean(series.values[-max(1, len(series) // 50) :]))


def cut(log: Log, loss_split: str, *, until: float, n_accuracies: int) -> Log:
    """What a log has until a step, of the loss, and so many of its accuracies, evenly apart."""
    series = []
    for one in log.series:
        seen = np.flatnonzero(one.steps <= until)
        if one.metric == "accuracy" and n_accuracies:
            seen = seen[np.unique(np.linspace(0, len(seen) - 1, n_accuracies).round().astype(int))]
        elif (one.metric, one.split) != ("loss", loss_split):
            continue
        few = {name: None if getattr(one, name) is None else getattr(one, name)[seen] for name in ("epochs", "seconds")}
        series.append(replace(one, steps=one.steps[seen], values=one.values[seen], **few))
    return replace(log, series=tuple(series), learning_rate=None)


def scores_of(group: str, logs: Mapping[str, Log], split: str, rates: str | None) -> Iterator[Score]:
    for name, log in logs.items():
        accuracy, loss = log.find("accuracy"), log.find("loss", split)
        siblings = [other for key, other in logs.items() if key != name]
        real, end = final(accuracy), float(loss.steps[-1])
        if siblings:
            yield Score(group, "loss known", real, known_loss(loss, siblings, accuracy.split))
        if len(loss) < 20:
            continue
        asked = {"metric": "accuracy", "split": accuracy.split, "total_steps": end, "learning_rate": rates}
        ways: list[tuple[str, int, Sequence[Log]]] = [("5 accuracies", N_SPARSE, ()), ("accuracy curve", 10**6, ())]
        for way, n_accuracies, relation in [*ways, *([("siblings", 0, siblings)] if siblings else [])]:
            seen = cut(log, split, until=SHARE * end, n_accuracies=n_accuracies)
            ended = converge(seen, **asked, relation_from=relation).end  # type: ignore[arg-type]
            assert ended is not None
            yield Score(group, way, real, (ended.p50, ended.p10, ended.p90))
        last = float(accuracy.values[accuracy.steps <= SHARE * end][-1])
        yield Score(group, "last accuracy", real, (last, np.nan, np.nan))


def known_loss(loss: Series, siblings: Sequence[Log], accuracy_split: str) -> tuple[float, float, float]:
    """The relation alone: siblings' pairs at the loss that the run really ends with."""
    pairs = [pairs_of(one.find("loss", loss.split), one.find("accuracy")) for one in siblings]
    below = float(np.median(loss.values[len(loss) // 4 : len(loss) // 2 + 1]))
    relation = learn_relation(None, pairs, below=below, is_same_data=loss.split == accuracy_split)
    errors = np.array([0.0, 1.2816, -1.2816])
    low_to_high = relation.accuracies(np.full(3, final(loss)), 0.0, errors)
    return float(low_to_high[0]), float(low_to_high[1]), float(low_to_high[2])


def table(scores: Sequence[Score], ways: Sequence[str], groups: Sequence[str]) -> str:
    """Median and worst error in points of accuracy, and how often p10 to p90 held the truth."""
    header = ["runs", "n", *(f"{way}{what}" for way in ways for what in ("", ": worst", ": in p10 to p90"))]
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    for group in [*groups, "**all**"]:
        cells, counts = [], []
        for way in ways:
            some = [one for one in scores if one.way == way and group in (one.group, "**all**")]
            counts.append(len(some))
            points = [one.points for one in some]
            has_band = some and not np.isnan(some[0].found[1])
            cells += [
                f"{np.median(points):.2f}" if some else "-",
                f"{max(points):.2f}" if some else "-",
                f"{sum(one.is_inside for one in some)} of {len(some)}" if has_band else "-",
            ]
        if any(counts):
            lines.append("| " + " | ".join([group, str(max(counts)), *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with curves/ and seeds/")
    parser.add_argument("--write", action="store_true", help="write docs/accuracy_from_loss.md")
    options = parser.parse_args()
    scores: list[Score] = []
    for group, (file, split, rates) in GROUPS.items():
        scores += scores_of(group, read_logs(options.data / file), split, rates)
    tables = {
        "relation": table(scores, ["loss known"], list(GROUPS)),
        "forecast": table(scores, ["siblings", "5 accuracies", "accuracy curve", "last accuracy"], list(GROUPS)),
    }
    print("\n\n".join(f"{name}\n{text}" for name, text in tables.items()))
    if options.write:
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), tables))


if __name__ == "__main__":
    main()
