"""`python -m lab.refit.curves.batches --data DIR`: how many times the batch the noise scale is, by MLPerf's runs.

A pair is two batch sizes of one benchmark and version, with the median samples to the target of at least five runs
each. Every benchmark counts the same.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.paths import PACKAGE
from traincast.curves.usual_batch import UsualBatch
from traincast.kernels.refit.op_rows import read_rows
from traincast.lognormal import P90_SDS
from traincast.report.files import write_file

Floats = NDArray[np.float64]

TARGET = PACKAGE / "data" / "curves" / "batch.json"
_FEWEST = 5  # runs at a batch size
_RATIOS = np.geomspace(0.05, 2000.0, 80)
_COVERED = 0.8
_EDGE = 1e-3  # pairs that need no more samples, or as many times more as the batch grew, tell only which side


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    benchmark: str
    version: str
    batch: float
    growth: float  # of the batch
    needed: float  # samples, relative to those at the smaller batch


def pairs_of(data: Path) -> list[Pair]:
    runs: dict[tuple[str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_rows(data / "laws" / "mlperf_rcp.csv.gz"):
        where = runs[row["benchmark"], row["version"]]
        where[float(row["batch"])].append(float(row["epochs_or_samples_to_target"]))
    found = []
    for (benchmark, version), batches in runs.items():
        medians = {batch: float(np.median(some)) for batch, some in batches.items() if len(some) >= _FEWEST}
        found += [
            Pair(
                benchmark=benchmark,
                version=version,
                batch=small,
                growth=large / small,
                needed=medians[large] / medians[small],
            )
            for small, large in combinations(sorted(medians), 2)
        ]
    return found


def fit_usual_batch(pairs: Sequence[Pair], provenance: str = "") -> UsualBatch:
    """The ratio of the least mean error, and the spread of the ratios that the pairs imply."""
    counts = Counter(pair.benchmark for pair in pairs)
    weight = np.array([1.0 / counts[pair.benchmark] for pair in pairs])
    growth, needed = (np.array([getattr(pair, name) for pair in pairs]) for name in ("growth", "needed"))
    off = np.abs(np.log((_RATIOS[:, None] + growth) / (_RATIOS[:, None] + 1.0)) - np.log(needed)) @ weight
    ratio = float(_RATIOS[int(np.argmin(off))])
    bounded = np.clip(needed, 1.0 + _EDGE, growth * (1.0 - _EDGE))
    implied = np.clip((growth - bounded) / (bounded - 1.0), _RATIOS[0], _RATIOS[-1])
    distance = np.abs(np.log(implied / ratio))
    order = np.argsort(distance)
    place = int(np.searchsorted(np.cumsum(weight[order]) / weight.sum(), _COVERED))
    return UsualBatch(ratio=ratio, log_sd=float(distance[order][place]) / P90_SDS, provenance=provenance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the public measurements")
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    pairs = pairs_of(options.data)
    n_benchmarks = len({pair.benchmark for pair in pairs})
    today = datetime.datetime.now(tz=datetime.UTC).date()
    usual = fit_usual_batch(pairs, f"{len(pairs)} pairs of batch sizes of {n_benchmarks} MLPerf benchmarks, {today}")
    write_file(options.output, json.dumps(asdict(usual), indent=1) + "\n")
    sys.stdout.write(f"Wrote {options.output}: {usual}\n")


if __name__ == "__main__":
    main()
