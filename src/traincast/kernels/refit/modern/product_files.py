"""Matrix products: XLA's tables, the largest rates of a search over shapes, DeepGEMM's and grouped ones."""

from __future__ import annotations

import json
from pathlib import Path

from traincast.kernels.refit.modern.kernel_row import Call, KernelRow, product
from traincast.kernels.refit.op_rows import read_rows

XLA, CEILINGS, MISC = "gemm_xla.csv.gz", "gemm_ceilings_stas.csv.gz", "kernels_misc.csv.gz"
FP8 = "fp8"
_NOT_IEEE = "f32 on matrix units, as tf32 or as three bf16 products: not told which"
_NO_SIZES = "number of tokens not told"


def xla_rows(data: Path) -> list[KernelRow]:
    """bf16 on H100 can be asked. f32 there is one of two things; B200 has fp8 only."""
    found = []
    for row in read_rows(data / "modern" / XLA):
        printed = row["precision"]
        precision = FP8 if printed.startswith("f8") else "tf32" if printed.startswith("f32") else "bf16"
        why = {FP8: FP8, "tf32": _NOT_IEEE}.get(precision, "")
        b, m, n, k = _sizes(row["shape"], "BMNK")
        found.append(_row(XLA, row, precision, (product(m, n, k, b=b, precision=precision),), why))
    return found


def ceiling_rows(data: Path) -> list[KernelRow]:
    """The best shape of a search is the fastest product that a device has, not a typical one."""
    found = []
    for row in read_rows(data / "modern" / CEILINGS):
        if row["kernel"] != "gemm":
            found.append(_row(CEILINGS, row, "bf16", (), _NO_SIZES))
            continue
        m, n, k = _sizes(row["shape"], "MNK")
        precision = row["precision"]
        calls = (product(m, n, k, precision=precision),)
        found.append(_row(CEILINGS, row, precision, calls, FP8 if precision == FP8 else ""))
    return found


def misc_rows(data: Path) -> list[KernelRow]:
    """Grouped products with groups of one size are batched ones; M counts the rows of all groups, or of each."""
    found = []
    for row in read_rows(data / "modern" / MISC):
        precision = FP8 if row["precision"].startswith(FP8) else row["precision"]
        shape = json.loads(row["shape"])
        m, n, k = (float(shape[key]) for key in "MNK")
        groups = float(shape.get("G", shape.get("B", 1)))
        if "G" in shape:
            m /= groups
        sizes = [(m, n, k)] if row["direction"] == "fwd" else [(m, n, k), (m, k, n), (k, n, m)]
        calls = tuple(product(*each, b=groups, precision=precision) for each in sizes)
        found.append(_row(MISC, row, precision, calls, "" if precision == "bf16" else precision))
    return found


def _sizes(shape: str, names: str) -> list[float]:
    values = json.loads(shape)
    return [float(values[name]) for name in names]


def _row(file: str, row: dict[str, str], precision: str, calls: tuple[Call, ...], why: str) -> KernelRow:
    return KernelRow(
        file=file,
        source=row["source"],
        kernel=row["kernel"],
        device=row["device"],
        precision=precision,
        direction={"fwd": "forward", "fwd+bwd": "full"}[row["direction"]],
        backend=row.get("backend", "torch"),
        seconds=float(row["time_us"] or "nan") * 1e-6,
        calls=calls,
        shape=row["shape"],
        not_asked=why,
        tags={"grade": row["grade"], "printed_precision": row["precision"], "note": row["note"]},
    )
