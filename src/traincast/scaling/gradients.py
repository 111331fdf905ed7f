"""When the gradients of a step are ready, and the buckets in which data parallelism reduces them.

PyTorch's DistributedDataParallel fills buckets in the order in which gradients became ready in the first step: 1 MiB,
then 25 MiB each (`torch/nn/parallel/distributed.py`, `_DEFAULT_FIRST_BUCKET_BYTES` and `bucket_cap_mb`). A bucket is
closed by the gradient that fills it, so it may be larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.once import once_per_graph
from traincast.trace.traffic import tensor_bytes

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20


@dataclass(frozen=True, eq=False, slots=True)
class Gradients:
    """What backward leaves for the optimizer, in the order in which it is ready."""

    bytes: Floats
    ready_op: Ints  # the last op that writes it

    @property
    def total_bytes(self) -> float:
        return float(self.bytes.sum())


@dataclass(frozen=True, eq=False, slots=True)
class Buckets:
    """Gradients that are reduced together."""

    bytes: Floats
    ready_op: Ints


@once_per_graph
def gradients_of(graph: Graph) -> Gradients:
    """The gradients of a lowered step. A step without a backward pass has none."""
    outputs = graph.op_outputs
    op_of = np.repeat(np.arange(graph.n_ops), outputs.lengths)
    storage = graph.tensor_storage[outputs.values]
    written = (graph.storage_kind[storage] == StorageKind.GRADIENT) & (graph.op_phase[op_of] == Phase.BACKWARD)
    ready = np.full(graph.n_storages, -1, dtype=np.int64)
    np.maximum.at(ready, storage[written], op_of[written])
    found = np.flatnonzero(ready >= 0)
    order = found[np.argsort(ready[found], kind="stable")]
    sizes = tensor_bytes(graph, np.array([2]))[0]
    return Gradients(bytes=sizes[graph.storage_owner[order]].astype(np.float64), ready_op=ready[order])


@once_per_graph
def weights_over_gradients(graph: Graph) -> float:
    """Bytes of all weights over those of the gradients: half with fp32 masters, far more where most are frozen."""
    owners = graph.storage_owner[graph.storage_kind == StorageKind.WEIGHT]
    total = gradients_of(graph).total_bytes
    return float(tensor_bytes(graph, np.array([2]))[0, owners].sum() / total) if total else 1.0


def buckets_of(
    gradients: Gradients, *, first_bytes: float = FIRST_BUCKET_BYTES, bucket_bytes: float = BUCKET_BYTES
) -> Buckets:
    """Gradients in the order of their readiness, put together until a bucket is full."""
    sizes: list[float] = []
    ready: list[int] = []
    held, limit = 0.0, first_bytes
    for number, (n_bytes, op) in enumerate(zip(gradients.bytes.tolist(), gradients.ready_op.tolist(), strict=True)):
        held += n_bytes
        if held >= limit or number == len(gradients.bytes) - 1:
            sizes.append(held)
            ready.append(op)
            held, limit = 0.0, bucket_bytes
    return Buckets(np.array(sizes), np.array(ready, dtype=np.int64))
