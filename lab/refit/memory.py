"""Fits the one figure of memory that is not read in a source: what a GPU's context takes a multiprocessor.

    python -m lab.refit.memory --data ../shared/data --traces DIR [--rows 400]

Rows are perceptrons whose memory nvidia-smi told (gpumemnet_mlp, one GPU, 108 multiprocessors); traces come from
benchmarks/capture_more_models.py. The prior is the middle of the reports in memory/overhead.py, 450 MiB, within a
factor of 1.8 (one standard deviation of the logarithm); rows of one source are one vote, whose own noise is 3 %. There
is no other source to leave out: what the figure is worth elsewhere is what the prior says.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from lab.accuracy.modern.mlp_rows import MlpRow, mlp_rows
from traincast.api.models import estimate_memory
from traincast.hardware.catalog import find_device
from traincast.memory.overhead import CONTEXT_BASE_BYTES
from traincast.trace.file import read_trace
from traincast.units import MIB

PRIOR_BYTES, PRIOR_LOG_SD = 450 * MIB, math.log(1.8)
SOURCE_LOG_SD = 0.03


def context_seen(rows: list[MlpRow], traces: Path) -> float:
    """The median of what was reported beyond what PyTorch's allocator is expected to have."""
    left = [
        row.peak_bytes
        - estimate_memory(
            read_trace(traces / f"{row.trace}.trace"), row.batch_size, on=row.place, precision="fp32", optimizer="adam"
        ).reserved_memory_bytes
        for row in rows
    ]
    return float(np.median(left))


def fitted(seen_bytes: float) -> float:
    """Prior and one vote, in logarithms."""
    weights = np.array([PRIOR_LOG_SD**-2, SOURCE_LOG_SD**-2])
    logs = np.log([PRIOR_BYTES, seen_bytes])
    return float(np.exp((weights * logs).sum() / weights.sum()))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--rows", type=int, help="only so many, evenly spread")
    asked = parser.parse_args(arguments)
    rows = [row for row in mlp_rows(asked.data) if (asked.traces / f"{row.trace}.trace").exists()]
    if asked.rows:
        rows = rows[:: max(len(rows) // asked.rows, 1)]
    seen = context_seen(rows, asked.traces)
    n_sm = find_device(rows[0].place).n_sm
    assert n_sm is not None
    per_sm = (fitted(seen) - CONTEXT_BASE_BYTES) / n_sm
    print(f"{len(rows)} rows: context {seen / MIB:,.0f} MiB seen, {fitted(seen) / MIB:,.0f} MiB with the prior")
    print(f"CONTEXT_BYTES_PER_SM = {round(per_sm, -4):_.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
