"""Attention and norms of training shapes as NVIDIA's cuDNN front end times them."""

from __future__ import annotations

import json
from pathlib import Path

from traincast.kernels.kernels_of import bytes_around_backward
from traincast.kernels.refit.modern.kernel_row import ITEM_BYTES, Call, KernelRow, moved
from traincast.kernels.refit.op_rows import read_rows
from traincast.kernels.work import NORM_WORKS, Work

FILE = "kernels_cudnn.csv.gz"
_PRECISION = {"bfloat16": "bf16"}
_WINDOW = "attention in a sliding window"
# 23.2 ms where 16,384 tokens see 128 each, about what all pairs of a causal mask take, and a thirtieth of it forward.
_WORKS_ON_ALL = "an fp8 backward kernel that works on the pairs outside the window, too"
_LSE_BYTES = 4  # the logarithm of a row's sum, kept for backward in fp32


def cudnn_rows(data: Path) -> list[KernelRow]:
    """Masks are asked as the code knows them: flop of all pairs, whatever a mask leaves out."""
    return [_row(row) for row in read_rows(data / "modern" / FILE)]


def _row(row: dict[str, str]) -> KernelRow:
    precision = _PRECISION.get(row["precision"], row["precision"])
    shape = json.loads(row["shape"])
    is_backward = row["direction"].startswith("bwd")
    is_attention = row["kernel"] == "attention"
    why = "" if precision == "bf16" else precision
    if is_attention and shape["window"]:
        why = why or _WINDOW
    call = (
        attention(shape, precision, is_backward)
        if is_attention
        else norm(row["kernel"], shape, precision, is_backward, row["backend"])
    )
    return KernelRow(
        file=FILE,
        source=row["source"],
        kernel=row["kernel"],
        device=row["device"],
        precision=precision,
        direction="backward" if is_backward else "forward",
        backend=row["backend"],
        seconds=float(row["time_us"]) * 1e-6,
        calls=(call,),
        shape=row["shape"],
        not_asked=why,
        kept_fraction=_kept(shape) if is_attention else 1.0,
        tags={
            "grade": row["grade"],
            "framework": row["framework"],
            "is_deterministic": str(int("deterministic" in row["direction"])),
            "mask": shape.get("mask", ""),
            "window": shape.get("window", ""),
            "doubt": _WORKS_ON_ALL if is_attention and shape["window"] and is_backward and precision == "fp8" else "",
        },
    )


def attention(shape: dict[str, float], precision: str, is_backward: bool) -> Call:
    """Fused, as `trace.flop` and `kernels_of` count it: two products forward, five backward."""
    b, q, kv, hq, hkv, d_qk, d_v = (float(shape[key]) for key in ("b", "q", "kv", "hq", "hkv", "d_qk", "d_v"))
    item = ITEM_BYTES[precision]
    pairs = b * hq * q * kv
    query, output, key, value = b * hq * q * d_qk, b * hq * q * d_v, b * hkv * kv * d_qk, b * hkv * kv * d_v
    forward_flop, rows_bytes, around = 2.0 * pairs * (d_qk + d_v), _LSE_BYTES * b * hq * q, 0.0
    if not is_backward:
        flop, n_bytes = forward_flop, item * (query + key + value) + max(item, 2) * output + rows_bytes
    else:
        flop = 2.0 * forward_flop + 2.0 * pairs * d_qk
        n_bytes = item * (2 * query + 2 * key + 2 * value + 2 * output) + rows_bytes
        around = bytes_around_backward(b * hq, b * hkv, (q, kv), (d_qk, d_v), item_bytes=item)
    return Call(
        work=Work.ATTENTION_BACKWARD if is_backward else Work.ATTENTION,
        shape=(b * hq, q, d_qk + d_v, kv),
        flop=flop,
        bytes=n_bytes,
        around=around,
        item=item,
        is_bf16=precision == "bf16",
    )


def norm(kernel: str, shape: dict[str, float], precision: str, is_backward: bool, backend: str) -> Call:
    """Reads its input and writes its output; backward reads the gradient, too. Backends but PyTorch's are tuned."""
    n_rows, width = float(shape["N"]), float(shape["C"])
    tuned = "compiled_norm" if is_backward and backend == "torch_compile" else "tuned_norm"
    work = Work[((kernel if backend == "pytorch" else tuned) + ("_backward" if is_backward else "")).upper()]
    n_bytes = (3 if is_backward else 2) * ITEM_BYTES[precision] * n_rows * width
    return moved(work, n_bytes, precision=precision, turns=n_rows if work in NORM_WORKS else 1.0)


def _kept(shape: dict[str, str]) -> float:
    """The share of pairs that a causal mask, and a window in it, leaves."""
    if shape["mask"] == "no_mask":
        return 1.0
    q, kv = float(shape["q"]), float(shape["kv"])
    reach = min(float(shape["window"] or kv), kv)  # keys that the last query sees
    return (reach * (reach + 1) / 2 + (q - reach) * reach) / (q * kv)
