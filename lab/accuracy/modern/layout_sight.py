"""What was forecast of measured layouts, and how far off it is: errors, coverage, and the order of layouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lab.accuracy.modern.layout_rows import Layout
from traincast.hardware.catalog import find_device

_CLEAR = 1.10  # measurements that differ by less are no order


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One measured layout and its forecast."""

    layout: Layout
    predicted_s: float
    low_s: float  # p10
    high_s: float  # p90
    fits: bool

    @property
    def observed_s(self) -> float:
        return self.layout.row.step_s

    @property
    def error(self) -> float:
        return self.predicted_s / self.observed_s - 1.0

    @property
    def ideal_s(self) -> float:
        """At the peak of the asked precision."""
        device = find_device(str(self.layout.row.device_name))
        return self.layout.row.flop_per_gpu / device.peak_flop_per_s(str(self.layout.options["precision"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Fractions. `constant` is the median error of the best constant MFU of just these rows."""

    n: int
    median: float
    mean: float
    bias: float
    covered: float
    constant: float
    n_not_fitting: int


def score_of(some: Sequence[Seen]) -> Score:
    errors = np.array([each.error for each in some])
    ratios = np.array([each.observed_s / each.ideal_s for each in some])
    return Score(
        n=len(some),
        median=float(np.median(np.abs(errors))),
        mean=float(np.mean(np.abs(errors))),
        bias=float(np.median(errors)),
        covered=float(np.mean([each.low_s <= each.observed_s <= each.high_s for each in some])),
        constant=min(float(np.median(np.abs(ratio / ratios - 1.0))) for ratio in ratios),
        n_not_fitting=sum(not each.fits for each in some),
    )


def grouped(seen: Iterable[Seen], key: Callable[[Seen], str]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for each in seen:
        found[key(each)].append(each)
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Pairs of layouts that differ by more than a tenth, and in how many of them the faster was forecast faster."""

    n_pairs: int
    n_right: int


def order_of(some: Iterable[Seen], *, same_batch: bool) -> Order:
    """Layouts of one model and precision on the same GPUs, by time a token. Repeats count as their median."""
    groups: dict[Hashable, dict[Hashable, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for each in some:
        row, options = each.layout.row, each.layout.options
        what = (each.layout.source, row.architecture, row.device, row.n_gpus, options["precision"])
        batch = (row.global_batch,) if same_batch else ()
        how = (row.global_batch, *(f"{name}={value}" for name, value in sorted(options.items())))
        groups[what, batch][how].append((each.observed_s / row.n_tokens, each.predicted_s / row.n_tokens))
    n_pairs = n_right = 0
    for by_layout in groups.values():
        middles = [np.median(np.array(times), axis=0) for times in by_layout.values()]
        for one, other in combinations(middles, 2):
            fast, slow = sorted((one, other), key=lambda times: float(times[0]))
            if slow[0] > _CLEAR * fast[0]:
                n_pairs += 1
                n_right += int(slow[1] > fast[1])
    return Order(n_pairs=n_pairs, n_right=n_right)
