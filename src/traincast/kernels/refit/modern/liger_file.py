"""Norms, losses and activations that the Liger kernels replace: Liger's own, and what PyTorch runs without them.

Times are medians of calls that each find a cleared cache. Liger's kernels do in one pass what eager PyTorch does in
several, which the code cannot be told today; their `calls` are the tuned kinds of work, so that a fit can learn them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traincast.kernels.refit.modern import eager_ops as eager
from traincast.kernels.refit.modern.eager_ops import Passes, recipe
from traincast.kernels.refit.modern.kernel_row import ITEM_BYTES, Call, KernelRow
from traincast.kernels.refit.op_rows import read_rows

FILE = "kernels_liger.csv.gz"
_EAGER = ("huggingface", "torch", "megatron-unfused")
_TUNED = ("liger", "liger_fused_add_rms_norm", "torch_compile")
_FUSED = "a fused kernel of its own"
_UNKNOWN_LAYER = "a layer that this reader does not take apart"
_NO_TIME = "memory only"
# Rows without a dtype: the benchmark's code says it.
_KNOWN_PRECISION = {
    "cross_entropy": "fp32",
    "tvd": "fp32",
    "megatron_cross_entropy": "bf16",
    "megatron_rms_norm": "bf16",
    "megatron_swiglu": "bf16",
}

Shape = Mapping[str, Any]


def _n(shape: Shape, *names: str) -> float:
    total = 1.0
    for name in names:
        total *= float(shape[name])
    return total


def _heads(shape: Shape) -> tuple[float, float]:
    """Elements of the queries and of the keys of one sequence."""
    width = float(shape.get("H", shape.get("hidden_size", 0)))
    length = float(shape.get("T", shape.get("seq_len", 0)))
    return length * width, length * width * float(shape["num_kv_heads"]) / float(shape["num_q_heads"])


def _queries_and_keys(layer: Callable[[float], Passes], shape: Shape) -> Passes:
    query, key = (layer(n_elements) for n_elements in _heads(shape))
    return Passes(query.forward + key.forward, query.backward + key.backward)


_LAYERS: dict[str, Callable[[Shape, str], Passes]] = {
    "cross_entropy": lambda s, p: eager.cross_entropy(_n(s, "B", "T"), _n(s, "V"), p),
    "embedding": lambda s, p: eager.embedding(_n(s, "B", "T"), _n(s, "D"), _n(s, "V"), p),
    "fused_add_rms_norm": lambda s, p: eager.add_rms_norm(_n(s, "M"), _n(s, "H")),
    "fused_linear_cross_entropy": lambda s, p: eager.head_with_loss(_n(s, "BT"), _n(s, "H"), _n(s, "V"), p),
    "geglu": lambda s, p: eager.gated_mlp(_n(s, "bsz", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
    "layer_norm": lambda s, p: eager.fused_norm(_n(s, "M"), _n(s, "N"), p, name="layer_norm"),
    "llama4_rope": lambda s, p: _queries_and_keys(eager.complex_rotary, s),
    "megatron_cross_entropy": lambda s, p: eager.parallel_loss(_n(s, "S", "B"), _n(s, "V")),
    "megatron_rms_norm": lambda s, p: eager.fused_norm(_n(s, "S", "B"), _n(s, "H"), p, name="rms_norm", is_added=True),
    "megatron_swiglu": lambda s, p: eager.gated_halves(_n(s, "S", "B", "ffn_local")),
    "relu_squared": lambda s, p: eager.squared_relu(_n(s, "M", "N")),
    "rms_norm": lambda s, p: eager.rms_norm(_n(s, "M"), _n(s, "H")),
    "rope": lambda s, p: _queries_and_keys(eager.rotary, s),
    "swiglu": lambda s, p: eager.gated_mlp(_n(s, "B", "T"), _n(s, "hidden_size"), _n(s, "intermediate_size"), p),
    "tvd": lambda s, p: eager.total_variation(_n(s, "B", "T"), _n(s, "V")),
}
# Kernels that are a part of whole layers: their rows have products in them.
_MLP = {"geglu": ("bsz", "T"), "swiglu": ("B", "T")}


def _tuned(kernel: str, shape: Shape, precision: str) -> Passes | None:
    """Each tensor once: what goes in is read, what comes out is written. None: not taken apart."""
    item = ITEM_BYTES[precision]

    def passes(kind: str, n_elements: float, counts: tuple[int, int], added: int = 0) -> Passes:
        """So many tensors forward and backward, and on top of an older gradient."""
        kinds = (kind, "compiled_norm_backward" if kind == "tuned_norm" else kind)
        forward, backward = (
            recipe(f"{each} {count * item}", n_elements, precision) if count else ()
            for each, count in zip(kinds, counts, strict=True)
        )
        more = recipe(f"elementwise {added * item}", n_elements, precision) if added else ()
        return Passes(forward, backward, more)

    if kernel in _MLP:
        sizes = _n(shape, *_MLP[kernel]), _n(shape, "hidden_size"), _n(shape, "intermediate_size")
        return eager.gated_mlp(*sizes, precision, is_tuned=True)
    match kernel:
        # The loss and its gradient in one pass, in place; the gradient is then added to itself.
        case "cross_entropy":
            return passes("tuned_loss", _n(shape, "B", "T", "V"), (3, 0), added=2)
        case "embedding":
            return passes("tuned_embedding", _n(shape, "B", "T", "D"), (2, 0))
        case "fused_add_rms_norm":
            return passes("tuned_norm", _n(shape, "M", "H"), (4, 4))
        case "layer_norm":
            return passes("tuned_norm", _n(shape, "M", "N"), (2, 3))
        case "megatron_rms_norm":
            return passes("tuned_norm", _n(shape, "S", "B", "H"), (2, 3), added=3)
        case "rms_norm":
            return passes("tuned_norm", _n(shape, "M", "H"), (2, 3))
        case "megatron_swiglu":
            return passes("tuned_elementwise", _n(shape, "S", "B", "ffn_local"), (3, 5))
        case "relu_squared":
            return passes("tuned_elementwise", _n(shape, "M", "N"), (2, 3))
        case "rope":
            return passes("tuned_elementwise", sum(_heads(shape)), (2, 2))
    return None


# Megatron's benchmarks start going back from the sum of the output, whose gradient is one value seen everywhere.
_SUMMED = {"megatron_rms_norm": ("S", "B", "H"), "megatron_swiglu": ("S", "B", "ffn_local")}


def _timed(kernel: str, layer: Passes, shape: Shape, direction: str, *, is_eager: bool) -> tuple[Call, ...]:
    """What a benchmark times. Megatron's call both directions "backward"; "full" also adds to the gradient."""
    if not kernel.startswith("megatron") or direction == "forward":
        return layer.of(direction)
    start: tuple[Call, ...] = ()
    if kernel in _SUMMED:
        is_spread = kernel == "megatron_rms_norm" or not is_eager  # fused kernels want it written out
        start = recipe("reduction 2; factory 2" if is_spread else "reduction 2", _n(shape, *_SUMMED[kernel]), "bf16")
    return layer.forward + start + layer.backward + (layer.added if direction == "full" else ())


def liger_rows(data: Path) -> list[KernelRow]:
    """Timed rows, and rows of memory alone, which have no seconds."""
    return [_row(row) for row in read_rows(data / "modern" / FILE)]


def _layer(kernel: str, shape: Shape, precision: str, backend: str) -> Passes | None:
    """None where it cannot be taken apart. No backend: eager ops."""
    if not precision:
        return None
    if backend:
        return _tuned(kernel, shape, precision) if backend in _TUNED else None
    return _LAYERS[kernel](shape, precision) if kernel in _LAYERS else None


def _row(row: dict[str, str]) -> KernelRow:
    kernel, backend, shape = row["kernel"], row["backend"], json.loads(row["shape"])
    precision = {"torch.bfloat16": "bf16", "torch.float32": "fp32"}.get(row["precision"], "")
    known = precision or _KNOWN_PRECISION.get(kernel, "")
    is_eager = backend in _EAGER or (kernel, backend) == (
        "megatron_rms_norm",
        "megatron",
    )  # PyTorch's own by a new name
    layer = _layer(kernel, shape, known, backend if not is_eager else "")
    calls = _timed(kernel, layer, shape, row["direction"], is_eager=is_eager) if layer else ()
    if kernel == "embedding" and not is_eager and row["direction"] != "forward":
        calls = ()  # going back, each backend has a way of its own
    why = "" if is_eager and calls else _UNKNOWN_LAYER if is_eager else _FUSED
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
            "is_precision_known_from_code": str(int(not precision)),
        },
    )
