"""Single-operator timings (NeuSight's) as blocks: one kernel a row, and the floor of its machine."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.byte_kernels import softmax_work
from traincast.kernels.kernels_of import SIZES, patches_in_blocks
from traincast.kernels.refit.block import Block, Kernels
from traincast.kernels.work import Work
from traincast.trace.graph import Floats

# Rows below this roofline time show the machine's floor; they give it and are not scored. What cuDNN does on the host
# before a convolution starts takes longer, 80 to 800 us, and differs from call to call.
_FLOOR_ROOFLINE_S = {"convolution": 20e-6}
_USUAL_FLOOR_ROOFLINE_S = 2e-6
_IDLE_S = 5e-5  # between two timed calls: synchronisation and the next call
_BINARY = ("add", "mul", "div", "pow")


def read_rows(path: Path) -> list[dict[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as stream:
        return list(csv.DictReader(stream))


def op_blocks(data: Path) -> Iterator[Block]:
    """gemm, convolution, elementwise, softmax and layer norm."""
    ops = data / "ops"
    gemm = [row for name in ("gemm_linear", "gemm_bmm", "gemm_amd") for row in read_rows(ops / f"{name}.csv.gz")]
    yield _block("gemm", gemm, _gemm_sizes(gemm))
    convolution = read_rows(ops / "conv.csv.gz")
    yield _block("convolution", convolution, _convolution_sizes(convolution))
    elementwise = read_rows(ops / "elementwise.csv.gz") + read_rows(ops / "elementwise_amd.csv.gz")
    yield _block("elementwise", elementwise, _elementwise_sizes(elementwise))
    rows = read_rows(ops / "softmax_ln.csv.gz")
    yield _block("softmax and layer norm", rows, _elementwise_sizes(rows))


def _column(rows: list[dict[str, str]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])


def _gemm_sizes(rows: list[dict[str, str]]) -> dict[str, Any]:
    b, m, n, k = (_column(rows, name) for name in ("b", "m", "n", "k"))
    is_linear = np.array([row["op"] == "linear" for row in rows])
    return {
        "work": np.where(is_linear, Work.LINEAR, Work.BATCHED),
        "b": b,
        "m": m,
        "n": n,
        "k": k,
        "flop": 2 * b * m * n * k,
        "bytes": 4 * b * (m * k + k * n + m * n),
        "is_unaligned": (k % 4 != 0) | (n % 4 != 0),
    }


def _convolution_sizes(rows: list[dict[str, str]]) -> dict[str, Any]:
    n, c_in, c_out, size, kernel = (_column(rows, name) for name in ("n", "c_in", "c_out", "hw_in", "ksize"))
    stride, pad = _column(rows, "stride"), _column(rows, "pad")
    out = np.floor((size + 2 * pad - kernel) / stride) + 1
    image = 4 * n * (c_in * size**2 + c_out * out**2)
    return {
        "work": np.full(len(rows), Work.CONVOLUTION),
        "m": n * out**2,
        "n": c_out,
        "k": c_in * kernel**2,
        "flop": 2 * n * out**2 * c_out * c_in * kernel**2,
        "bytes": image + 4 * c_in * c_out * kernel**2,
        "image": image,
        "patches_2": n * patches_in_blocks(np.stack([out, out], axis=1)),
        "patches_4": n * np.ceil(out / 4) ** 2,
        "is_winograd": (kernel == 3) & (stride == 1),
        "is_unaligned": (c_in % 8 != 0) | (c_out % 8 != 0),
    }


def _elementwise_sizes(rows: list[dict[str, str]]) -> dict[str, Any]:
    count, columns = _column(rows, "rows"), _column(rows, "cols")
    tensors = np.array([3.0 if row["op"] in _BINARY else 2.0 for row in rows])
    work = np.full(len(rows), Work.ELEMENTWISE)
    name = np.array([row["op"] for row in rows])
    work[name == "softmax"] = Work.SOFTMAX
    is_softmax, is_norm = name == "softmax", name == "ln"
    work[is_softmax] = [softmax_work(width, 4) for width in columns[is_softmax]]
    work[is_norm] = Work.LAYER_NORM
    turns = np.where(is_norm, count, 1.0)
    return {"work": work, "b": turns, "bytes": 4 * tensors * count * columns, "flop": np.zeros(len(rows))}


def _block(name: str, rows: list[dict[str, str]], sizes: dict[str, Any]) -> Block:
    ones = np.ones(len(rows))
    work = sizes["work"].astype(np.int64)
    false = np.zeros(len(rows), dtype=bool)
    tags = {key: np.array([row.get(key, "") for row in rows]) for key in ("device", "op", "dims")}
    devices = tuple(sorted(set(tags["device"])))
    observed_s = _column(rows, "ms") * 1e-3
    full = {key: np.asarray(sizes.get(key, ones if key in "bmnk" else 0.0 * ones), dtype=float) for key in SIZES}
    floor_s, is_floor = _floors(name, tags, devices, full, observed_s)
    tags["is_floor"] = is_floor
    return Block(
        name=name,
        kernels=Kernels(
            work=work,
            item=np.full(len(rows), 4),
            is_bf16=false,
            is_winograd=np.asarray(sizes.get("is_winograd", false), dtype=bool),
            is_unaligned=np.asarray(sizes.get("is_unaligned", false), dtype=bool),
            is_masked=false,
            sizes=full,
        ),
        row=np.arange(len(rows)),
        count=ones,
        device=np.searchsorted(devices, tags["device"]),
        devices=devices,
        observed_s=observed_s,
        floor_s=floor_s,
        tags=tags,
        idle_s=_IDLE_S,
        floor_power=1.0 if name == "convolution" else 1.5,
    )


def _floors(
    name: str, tags: dict[str, Any], devices: tuple[str, ...], sizes: dict[str, Floats], observed_s: Floats
) -> tuple[Floats, Any]:
    """For each op on each machine the median of its smallest rows: the launch, the host and two events."""
    roofline_s = np.zeros(len(observed_s))
    for one in devices:
        device, chosen = find_device(one), tags["device"] == one
        compute_s = sizes["flop"][chosen] / device.peak_flop_per_s("fp32")
        roofline_s[chosen] = np.maximum(compute_s, sizes["bytes"][chosen] / device.memory_bytes_per_s)
    is_floor = roofline_s < _FLOOR_ROOFLINE_S.get(name, _USUAL_FLOOR_ROOFLINE_S)
    floor_s = np.zeros(len(observed_s))
    for one in devices:
        for op in set(tags["op"][tags["device"] == one]):
            chosen = (tags["device"] == one) & (tags["op"] == op)
            smallest = chosen & is_floor
            if not smallest.any():  # no small row: the smallest time is the best guess
                smallest = chosen & (observed_s <= np.quantile(observed_s[chosen], 0.02))
            floor_s[chosen] = np.median(observed_s[smallest])
    return floor_s, is_floor
