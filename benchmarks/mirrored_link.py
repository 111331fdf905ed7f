"""What a byte of gradients costs on two P100, from lone convolutions: the other runs of the project with two GPUs.

Convolutions with many weights and few samples were timed in Keras under MirroredStrategy, and others like them on one
GPU. How much longer a step gets with every byte of weights, on two GPUs and on one, tells what reducing a byte costs.
"""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from traincast.trace.graph import Floats

LEAST_WEIGHT_MB = 5.0
MOST_IMAGE_MB = 5.0  # of the input, and of the output
MOST_GFLOP = 40.0


def weight_slopes(layers: Path) -> list[tuple[str, int, float]]:
    """Series, its rows, and milliseconds a megabyte of weights."""
    mirrored, alone = layers / "conv_mirrored_2xP100.csv.gz", layers / "conv_tf2_K80_M40_P100.csv.gz"
    series = {
        "two GPUs, timed by a callback": rows(mirrored, n_gpus=2, wanted=("timing", "callback")),
        "two GPUs, timed by session": rows(mirrored, n_gpus=2, wanted=("timing", "session")),
        "one GPU": rows(alone, n_gpus=1, wanted=("backward", "1"), run="P100PCIe"),
    }
    return [(name, len(found), slope(np.array(found))) for name, found in series.items()]


def link_table(layers: Path) -> str:
    found = weight_slopes(layers)
    one = found[-1][2]
    lines = ["| series | n | ms a MB of weights | above one GPU | as a rate |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, n, per_mb in found:
        above = f"{per_mb - one:.3f} | {1 / (per_mb - one):.1f} GB/s" if per_mb > one else "|"
        lines.append(f"| {name} | {n} | {per_mb:.3f} | {above} |")
    return "\n".join(lines)


def rows(path: Path, *, n_gpus: int, wanted: tuple[str, str], run: str = "") -> list[list[float]]:
    """Of each fitting row: 1, weights and images in MB, Gflop of a replica, milliseconds."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row[wanted[0]] == wanted[1] and run in row["run"] and row["median_s"]:
                sizes = _sizes(row, n_gpus)
                if sizes is not None:
                    found.append([1.0, *sizes, 1e3 * float(row["median_s"])])
    return found


def _sizes(row: dict[str, str], n_gpus: int) -> tuple[float, float, float] | None:
    names = ("batch", "input_size", "kernel", "channels_in", "channels_out", "stride")
    batch, size, kernel, n_in, n_out, stride = (int(row[name]) for name in names)
    if row["padding"] == "VALID" and size < kernel:
        return None
    out = (size - kernel) // stride + 1 if row["padding"] == "VALID" else math.ceil(size / stride)
    weights = kernel**2 * n_in * n_out
    input_mb, output_mb = 4e-6 * batch * size**2 * n_in, 4e-6 * batch * out**2 * n_out
    gflop = 1e-9 * 3 * 2 * math.ceil(batch / n_gpus) * out**2 * weights
    is_fitting = max(input_mb, output_mb) < MOST_IMAGE_MB and gflop < MOST_GFLOP and 4e-6 * weights > LEAST_WEIGHT_MB
    return (4e-6 * weights, input_mb + output_mb, gflop) if is_fitting else None


def slope(found: Floats) -> float:
    """Milliseconds a MB of weights in a robust linear fit (a start, weights, images, flop)."""
    parts, measured = found[:, :-1], found[:, -1]

    def left(prices: Floats) -> Floats:
        return parts @ prices - measured

    return float(least_squares(left, np.array([5.0, 0.15, 0.5, 0.2]), loss="soft_l1").x[1])
