"""Learning curves of other people's runs, as the folder `laws/` of the public measurements has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.curves.fit import Kind, kind_of
from traincast.errors import InputError
from traincast.kernels.refit.op_rows import read_rows
from traincast.trace.graph import Floats

MLPERF = "mlperf"  # the source whose runs end where they reach their target
# What `eval_accuracy` is, and the quality that the rules of MLPerf ask for.
_QUALITIES = {
    "bert": ("accuracy", 0.72),
    "resnet": ("accuracy", 0.759),
    "rnnt": ("wer", 0.058),
    "ssd": ("map", 0.23),
    "unet3d": ("dice", 0.908),
    "dlrm": ("auc", 0.8025),
    "dlrm_dcnv2": ("auc", 0.80275),
    "retinanet": ("map", 0.34),
}
_CUT_IN_TWO = "loss_or_error"  # one curve, of which the authors fitted a part: both are the run
_FINAL_SHARE = 50  # a fiftieth: a single value is no result


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StrangerCurve:
    """One metric of one run over steps, samples or epochs, whichever its file has throughout."""

    source: str
    family: str
    run: str
    split: str
    metric: str  # by its own name
    steps: Floats
    values: Floats
    rates: Floats | None  # learning rates, where they were logged throughout
    target: float | None = None  # at which the run was stopped

    @property
    def kind(self) -> Kind | None:
        """As a user would say; None where the name says nothing, and the values have to."""
        try:
            return kind_of(self.metric)
        except InputError:
            return None

    @property
    def end(self) -> float:
        return float(self.steps[-1])

    @property
    def final(self) -> float:
        """The mean of the last fiftieth."""
        return float(np.mean(self.values[-max(1, len(self.values) // _FINAL_SHARE) :]))

    @property
    def is_rising(self) -> bool:
        """Whether higher is better."""
        if self.kind is not None:
            return self.kind in ("accuracy", "reward")
        half = len(self.values) // 2
        return bool(np.median(self.values[half:]) > np.median(self.values[:half]))


def stranger_curves(data: Path) -> dict[str, list[StrangerCurve]]:
    """By source, in the order of their names."""
    files = sorted((data / "laws").glob("curves_*.csv.gz"))
    return {_source(file): curves_of(_source(file), read_rows(file)) for file in files}


def _source(file: Path) -> str:
    return file.name.removeprefix("curves_").removesuffix(".csv.gz")


def curves_of(source: str, lines: Iterable[Mapping[str, str]]) -> list[StrangerCurve]:
    """Curves of two points and more, whose values are not all alike at the end: finite, in order of their steps."""
    rows: dict[tuple[str, str, str, str], list[Mapping[str, str]]] = defaultdict(list)
    for line in lines:
        split = "all" if line["metric"] == _CUT_IN_TWO else line["split"]
        rows[(line["family"], line["run"], split, line["metric"])].append(line)
    found = (_curve(source, key, some) for key, some in sorted(rows.items()))
    return [curve for curve in found if curve is not None]


def _curve(source: str, key: tuple[str, str, str, str], rows: Sequence[Mapping[str, str]]) -> StrangerCurve | None:
    family, run, split, metric = key
    place = next((name for name in ("step", "seen", "epoch") if all(row[name] for row in rows)), None)
    if place is None:
        return None
    table = np.array([[_number(row[place]), _number(row["value"]), _number(row["lr"])] for row in rows])
    table = table[np.isfinite(table[:, 0]) & np.isfinite(table[:, 1])]
    table = table[np.argsort(table[:, 0], kind="stable")]
    table = table[np.r_[np.diff(table[:, 0]) > 0, True][: len(table)]]  # the last value of a step
    if len(table) < 2 or not table[-1, 1]:
        return None
    name, target = _QUALITIES[family] if source == MLPERF else (metric, None)
    return StrangerCurve(
        source=source,
        family=family,
        run=run,
        split=split,
        metric=name,
        steps=table[:, 0],
        values=table[:, 1],
        rates=np.maximum(table[:, 2], 0.0) if np.isfinite(table[:, 2]).all() and table[:, 2].max() > 0 else None,
        target=target,
    )


def _number(text: str) -> float:
    return float(text) if text else float("nan")


def evenly(curves: Sequence[StrangerCurve], *, of_family: int, of_all: int) -> list[StrangerCurve]:
    """At most so many, of every family alike and evenly spread over its order: the same ones whenever it is asked."""
    families: dict[str, list[StrangerCurve]] = defaultdict(list)
    for curve in curves:
        families[curve.family].append(curve)
    chosen = []
    most = min(of_family, max(of_all // max(len(families), 1), 1))
    for some in families.values():
        places = np.unique(np.linspace(0, len(some) - 1, min(most, len(some))).round().astype(int))
        chosen += [some[place] for place in places.tolist()]
    return chosen
