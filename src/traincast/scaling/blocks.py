"""The blocks of a transformer in a lowered step, and what tensor parallelism divides of it.

A block is known by its attention: one op where it is fused, else a softmax between two batched products. What attention
writes has the size of the *residual stream* (samples x positions x width), which every block reads and adds to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.structure import once_per_structure
from traincast.trace.traffic import tensor_bytes

if TYPE_CHECKING:
    from traincast.scaling.split import ModelSplit

Flags = NDArray[np.bool_]

_PRODUCTS = (OpKind.GEMM, OpKind.BATCHED_GEMM, OpKind.ATTENTION, OpKind.SOFTMAX, OpKind.EMBEDDING, OpKind.OPTIMIZER)
_STATE = (StorageKind.WEIGHT, StorageKind.GRADIENT, StorageKind.OPTIMIZER_STATE)
_PROBES = np.array([3, 7])  # sizes that agree at two batch sizes agree at all; no weight does by chance


@once_per_structure
def attention_outputs(graph: Graph) -> Ints:
    """What the attention of each block writes in the forward pass, one tensor a block; none: not a transformer."""
    outputs = graph.op_outputs.rows()
    kinds = op_kinds(graph)
    forward = [op for op in range(graph.n_ops) if graph.op_phase[op] == Phase.FORWARD]
    ops = [op for op in forward if kinds[op] == OpKind.ATTENTION] or _products_after_softmax(forward, kinds)
    return np.array([outputs[op][0] for op in ops], dtype=np.int64)


def _products_after_softmax(forward: list[int], kinds: tuple[OpKind, ...]) -> list[int]:
    """A softmax counts if a batched product comes before it and one after, each with no other softmax between."""
    found: list[int] = []
    marks = [op for op in forward if kinds[op] in (OpKind.SOFTMAX, OpKind.BATCHED_GEMM)]
    for before, op, after in zip(marks, marks[1:], marks[2:], strict=False):
        if [kinds[each] for each in (before, op, after)] == [OpKind.BATCHED_GEMM, OpKind.SOFTMAX, OpKind.BATCHED_GEMM]:
            found.append(after)
    return found


def activation_bytes(graph: Graph, batch_sizes: Ints) -> Floats:
    """Of the residual stream at every block: one row a batch size, one column a block."""
    return tensor_bytes(graph, batch_sizes)[:, attention_outputs(graph)].astype(np.float64)


def key_value_bytes(graph: Graph, batch_sizes: Ints) -> Floats:
    """Of keys and values together at every block: one row a batch size, one column a block.

    Where attention is not one op, they are as large as what it writes.
    """
    kinds, sizes = op_kinds(graph), tensor_bytes(graph, batch_sizes).astype(np.float64)
    rows = graph.op_inputs.rows()
    fused = [
        rows[op] for op in range(graph.n_ops) if kinds[op] == OpKind.ATTENTION and graph.op_phase[op] == Phase.FORWARD
    ]
    if not fused:
        return 2 * activation_bytes(graph, batch_sizes)
    return np.stack([sizes[:, inputs[1]] + sizes[:, inputs[2]] for inputs in fused], axis=1)


def is_divided_op(graph: Graph, residual: Flags) -> Flags:
    """Ops whose work tensor parallelism shares: products, attention, softmax, tables, the update, and what runs on
    tensors of another size than the residual stream. `residual` has one entry a tensor.

    Norms, and what else runs on the residual stream (dropout, additions, casts), every device does in full. So, too,
    do copies and rotations of queries of just that size, which are divided in truth: a little pessimistic.
    """
    kinds = op_kinds(graph)
    largest = _largest_tensor(graph)
    is_product = np.array([kind in _PRODUCTS for kind in kinds], dtype=bool) | (graph.op_phase == Phase.OPTIMIZER)
    is_norm = np.array([kind == OpKind.NORMALISATION for kind in kinds], dtype=bool)
    is_residual = np.where(largest >= 0, residual[largest], False)
    return is_product | ~(is_norm | is_residual)


def is_head_op(graph: Graph, blocks_graph: Graph) -> Flags:
    """The loss, and what reads or writes a tensor of the size of the logits: the product that makes them, and those of
    its gradients. What the loss reads is seen in `blocks_graph`, before ops were joined.
    """
    as_logits = _has_size_of_logits(blocks_graph)
    touches = np.zeros(graph.n_ops, dtype=bool)
    for tensors in (graph.op_inputs, graph.op_outputs):
        touches[np.repeat(np.arange(graph.n_ops), tensors.lengths)[as_logits[tensors.values]]] = True
    flags: Flags = (graph.op_phase == Phase.LOSS) | touches & (graph.op_phase != Phase.OPTIMIZER)
    return flags


@once_per_structure
def _has_size_of_logits(graph: Graph) -> Flags:
    """Tensors as large as the largest that forward makes and the loss reads, at every batch size."""
    sizes, phase = graph.numel(_PROBES), graph.op_phase
    made = graph.op_outputs.values[np.repeat(phase, graph.op_outputs.lengths) == Phase.FORWARD]
    read = graph.op_inputs.values[np.repeat(phase, graph.op_inputs.lengths) == Phase.LOSS]
    passed = np.intersect1d(made, read)
    if not len(passed):
        return np.zeros(sizes.shape[1], dtype=bool)
    logits = passed[sizes[0, passed].argmax()]
    flags: Flags = (sizes == sizes[:, [logits]]).all(axis=0)
    return flags


def is_residual(graph: Graph, blocks: Ints) -> Flags:
    """Tensors as large as the residual stream at some block, at every batch size."""
    sizes = graph.numel(_PROBES)
    return (sizes[:, :, None] == sizes[:, None, np.unique(blocks)]).all(axis=0).any(axis=1)


def storage_fraction(graph: Graph, residual: Flags, split: ModelSplit, *, stage: float, n_in_flight: float) -> Floats:
    """What one device holds of each storage, in parts of the whole.

    Weights, gradients and the optimizer's state are divided by tensor and pipeline parallelism. Activations are divided
    by tensor and context parallelism; those of the size of the residual stream are whole on every device of a
    tensor-parallel group, unless positions are divided there too. A stage holds those of its own blocks for as many
    micro-batches as are under way. Temporaries are of one op, divided or not.
    """
    kind = graph.storage_kind
    whole = 1.0 / split.tensor if split.sequence else 1.0
    of_pass = np.where(residual[graph.storage_owner], whole, 1.0 / split.tensor) / split.context
    fraction = np.where(kind == StorageKind.ACTIVATION, of_pass * stage * n_in_flight, 1.0)
    fraction = np.where(kind == StorageKind.TEMPORARY, of_pass, fraction)
    return np.where(np.isin(kind, _STATE), stage / split.tensor, fraction)


def _largest_tensor(graph: Graph) -> Ints:
    """The largest tensor that each op reads or writes; -1 without one."""
    sizes = graph.numel(_PROBES[:1])[0]
    rows = zip(graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True)
    return np.array([max(read + written, key=sizes.__getitem__, default=-1) for read, written in rows], dtype=np.int64)
