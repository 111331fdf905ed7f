"""Norms, losses and activations that the Liger kernels replace: Liger's own, and what PyTorch runs without them.

Liger's kernels do in one pass what eager PyTorch does in several, which the code cannot be told today; their `calls`
are the least that must be moved, so that a later fit can learn them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traincast.kernels.refit.modern import eager_ops as eager
from traincast.kernels.refit.modern.eager_ops import Passes
from traincast.kernels.refit.modern.kernel_row import ITEM_BYTES, KernelRow, moved
from traincast.kernels.refit.op_rows import read_rows
from traincast.kernels.work import Work

FILE = "kernels_liger.csv.gz"
_EAGER = ("huggingface", "torch")
_FUSED = "a fused kernel of its own"
_UNKNOWN_LAYER = "a layer that this reader does not take apart"
_NO_TIME = "memory only"
# Rows without a dtype: their memory says it (input, output and gradients of that size and no other).
_READ_FROM_MEMORY = {"cross_entropy": "fp32", "megatron_rms_norm": "bf16", "megatron_swiglu": "bf16"}

Shape = Mapping[str, Any]


def _n(shape: Shape, *names: str) -> float:
    total = 1.0
    for name in names:
        total *= float(shape[name])
    return total


def _rope(shape: Shape, precision: str) -> Passes:
    """Queries and keys of one sequence."""
    width = float(shape.get("H", shape.get("hidden_size", 0)))
    length = float(shape.get("T", shape.get("seq_len", 0)))
    heads, kv_heads = float(shape["num_q_heads"]), float(shape["num_kv_heads"])
    query = eager.rotary(length * width, precision)
    key = eager.rotary(length * width * kv_heads / heads, precision)
    return Passes(query.forward + key.forward, query.backward + key.backward)


def _fused_add(shape: Shape, precision: str) -> Passes:
    norm = eager.eager_rms_norm(_n(shape, "M"), _n(shape, "H"), precision)
    return eager.add_before(norm, _n(shape, "M", "H"), precision)


_LAYERS: dict[str, Callable[[Shape, str], Passes]] = {
    "cross_entropy": lambda s, p: eager.cross_entropy(_n(s, "B", "T"), _n(s, "V"), p),
    "embedding": lambda s, p: eager.embedding(_n(s, "B", "T"), _n(s, "D"), _n(s, "V"), p),
    "fused_add_rms_norm": _fused_add,
    "fused_linear_cross_entropy": lambda s, p: eager.head_with_loss(_n(s, "BT"), _n(s, "H"), _n(s, "V"), p),
    "geglu": lambda s, p: eager.gated_mlp(_n(s, "bsz", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
    "layer_norm": lambda s, p: eager.fused_norm(_n(s, "M"), _n(s, "N"), p),
    "megatron_rms_norm": lambda s, p: eager.fused_norm(_n(s, "S", "B"), _n(s, "H"), p),
    "megatron_swiglu": lambda s, p: eager.gated_product(_n(s, "S", "B", "ffn_local"), p, is_joined=True),
    "relu_squared": lambda s, p: eager.squared_relu(_n(s, "M", "N"), p),
    "rms_norm": lambda s, p: eager.eager_rms_norm(_n(s, "M"), _n(s, "H"), p),
    "rope": _rope,
    "swiglu": lambda s, p: eager.gated_mlp(_n(s, "B", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
}


def _least(work: Work, backward: Work, n_elements: float, precision: str, tensors: tuple[int, int]) -> Passes:
    """One kernel each way that moves so many tensors."""
    item = ITEM_BYTES[precision]
    return Passes(
        (moved(work, tensors[0] * item * n_elements, precision=precision),),
        (moved(backward, tensors[1] * item * n_elements, precision=precision),),
    )


def _fused_mlp(n_rows: float, width: float, inner: float, precision: str) -> Passes:
    into, out = eager.linear(n_rows, inner, width, precision), eager.linear(n_rows, width, inner, precision)
    gate = _least(Work.ELEMENTWISE, Work.ELEMENTWISE, n_rows * inner, precision, (3, 5))
    both = moved(Work.ELEMENTWISE, 3 * ITEM_BYTES[precision] * n_rows * width, precision=precision)
    return Passes(
        into.forward * 2 + gate.forward + out.forward, out.backward + gate.backward + into.backward * 2 + (both,)
    )


_NORM = (Work.LAYER_NORM, Work.LAYER_NORM_BACKWARD)
_ACT = (Work.ELEMENTWISE, Work.ELEMENTWISE)
_LIGER: dict[str, Callable[[Shape, str], Passes]] = {
    # The loss and its gradient in one pass forward; backward scales the gradient, or does nothing for a factor of 1.
    "cross_entropy": lambda s, p: Passes(_least(*_ACT, _n(s, "B", "T", "V"), p, (3, 0)).forward, ()),
    "embedding": lambda s, p: eager.embedding(_n(s, "B", "T"), _n(s, "D"), _n(s, "V"), p),
    "fused_add_rms_norm": lambda s, p: _least(*_NORM, _n(s, "M", "H"), p, (4, 4)),
    "geglu": lambda s, p: _fused_mlp(_n(s, "bsz", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
    "layer_norm": lambda s, p: _least(*_NORM, _n(s, "M", "N"), p, (2, 3)),
    "megatron_rms_norm": lambda s, p: _least(*_NORM, _n(s, "S", "B", "H"), p, (2, 3)),
    "megatron_swiglu": lambda s, p: _least(*_ACT, _n(s, "S", "B", "ffn_local"), p, (3, 5)),
    "relu_squared": lambda s, p: _least(*_ACT, _n(s, "M", "N"), p, (2, 3)),
    "rms_norm": lambda s, p: _least(*_NORM, _n(s, "M", "H"), p, (2, 3)),
    "rope": lambda s, p: _least(*_ACT, sum(c.bytes for c in _rope(s, p).forward[::5]) / 2 / ITEM_BYTES[p], p, (2, 2)),
    "swiglu": lambda s, p: _fused_mlp(_n(s, "B", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
}


def liger_rows(data: Path) -> list[KernelRow]:
    """Timed rows, and rows of memory alone, which have no seconds."""
    return [_row(row) for row in read_rows(data / "modern" / FILE)]


def _row(row: dict[str, str]) -> KernelRow:
    kernel, backend, shape = row["kernel"], row["backend"], json.loads(row["shape"])
    precision = {"torch.bfloat16": "bf16", "torch.float32": "fp32"}.get(row["precision"], "")
    known = precision or _READ_FROM_MEMORY.get(kernel, "")
    layers = _LAYERS if backend in _EAGER else _LIGER
    calls = layers[kernel](shape, known).of(row["direction"]) if kernel in layers and known else ()
    why = "" if backend in _EAGER and calls else _FUSED if backend not in _EAGER else _UNKNOWN_LAYER
    return KernelRow(
        file=FILE,
        source=row["source"],
        kernel=kernel,
        device=row["device"],
        precision=known,
        direction=row["direction"],
        backend=backend,
        seconds=float(row["time_us"] or "nan") * 1e-6,
        calls=calls,
        shape=row["shape"],
        not_asked=_NO_TIME if not row["time_us"] else why,
        memory_bytes=float(row["memory_MB"]) * 2**20 if row["memory_MB"] else None,
        tags={
            "grade": row["grade"],
            "framework": row["framework"],
            "is_precision_read_from_memory": str(int(not precision)),
        },
    )
