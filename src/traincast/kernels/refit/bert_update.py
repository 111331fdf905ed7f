"""The update of NVIDIA's BERT in 32 bits: an optimizer of its own that goes from parameter to parameter.

Its logs name it (lambdal/deeplearning-benchmark, results/A100_PCIe/PyTorch_bert_large_squad_FP32: warnings of
optimization.py about `next_m.mul_(beta1).add_(1 - beta1, grad)` and of torch.norm). `BertAdam` runs a dozen ops a
parameter; until 2021 it also clipped each parameter's gradient by itself and waited for the norm, so that the host
never ran ahead. Runs in 16 bits have a fused optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.work import Work
from traincast.trace.graph import Floats, Graph, Phase

# mul_, add_, mul_, addcmul_, sqrt, add, div; weight decay's mul and add_; the rate's mul and add_: each reads one to
# three tensors and writes one.
_N_OPS, _N_ACCESSES = 11, 28
_N_CLIP_OPS, _N_CLIP_ACCESSES = 9, 3  # torch.norm, its square root and sums of one value, the comparison, mul_
_ITEM_BYTES = 4
_USUAL_BANDWIDTH_FRACTION = 0.85


@dataclass(frozen=True, eq=False, slots=True)
class BertUpdate:
    """Kernels of the update, one entry a size of parameter, and what the host makes the device wait."""

    count: Floats
    bytes: Floats  # of each kernel
    n_dispatched: float
    waiting_s: float

    def columns(self) -> dict[str, Any]:
        """As the columns of a block's kernels."""
        n = len(self.count)
        sizes = {name: np.zeros(n) for name in SIZES} | {name: np.ones(n) for name in "bmnk"} | {"bytes": self.bytes}
        no = np.zeros(n, dtype=bool)
        flags = {name: no for name in ("is_bf16", "is_winograd", "is_unaligned", "is_masked")}
        return (
            sizes | flags | {"count": self.count, "work": np.full(n, Work.ELEMENTWISE), "item": np.full(n, _ITEM_BYTES)}
        )


def bert_update(graph: Graph, device: str, *, clips_each: bool) -> BertUpdate:
    """The host begins when the gradients are known: what it takes beyond the device's own work is waiting."""
    n_elements, n_tensors = np.unique(_parameter_elements(graph), return_counts=True)
    n_ops = _N_OPS + _N_CLIP_OPS * clips_each
    n_accesses = _N_ACCESSES + _N_CLIP_ACCESSES * clips_each
    moved = n_elements * _ITEM_BYTES * n_accesses
    device_s = float(n_tensors @ moved) / (_USUAL_BANDWIDTH_FRACTION * find_device(device).memory_bytes_per_s)
    n_dispatched = float(n_tensors.sum() * n_ops)
    host_s = n_dispatched * find_host("torch-eager").optimizer_dispatch_s
    return BertUpdate(
        count=n_tensors.astype(float) * n_ops,
        bytes=moved / n_ops,
        n_dispatched=n_dispatched,
        waiting_s=max(host_s - device_s, 0.0),
    )


def _parameter_elements(graph: Graph) -> Floats:
    """Of every tensor that the first op of the update over whole parameters writes."""
    dims = graph.dims(np.array([1]))[0].astype(float)
    for op in np.flatnonzero(graph.op_phase == Phase.OPTIMIZER).tolist():
        tensors = graph.op_outputs.rows()[op]
        shapes = [dims[graph.dim_start[t] : graph.dim_start[t + 1]] for t in tensors]
        if any(len(shape) for shape in shapes):
            return np.array([shape.prod() for shape in shapes])
    return np.zeros(0)
