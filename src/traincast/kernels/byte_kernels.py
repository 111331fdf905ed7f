"""The kernels of ops that move bytes: norms, softmax, losses, embeddings, copies, and all that is elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.kernels.work import ELEMENT_WORKS, Work
from traincast.trace.kinds import FUSED, OpKind

if TYPE_CHECKING:
    from traincast.kernels.kernels_of import Kernel, Op

_LONG_ROW = 1024
_HUGE_ROW_BYTES = 96 * 1024  # two blocks a processor read rows like this: together more than half of a cache of 50 MB
_LABEL_THREADS = (32.0, 1024.0)
_LABELS_A_THREAD = 16.0
# Before PyTorch adds up the rows of a table's gradient it sorts their indices (a histogram, its sum, three or four
# passes), finds those that are the same and cuts their rows into parts: kernels too small for their bytes to matter.
SORTING_KERNELS = 14.0
_NO_REDUCTION = 0  # one loss a row is written by as many threads: no row waits

_BYTES_WORK: dict[OpKind, tuple[Work, Work]] = {  # forward, backward
    OpKind.POOLING: (Work.POOLING, Work.POOLING_BACKWARD),
    OpKind.DROPOUT: (Work.DROPOUT, Work.DROPOUT),
    OpKind.FACTORY: (Work.FACTORY, Work.FACTORY),
    OpKind.ELEMENTWISE: (Work.ELEMENTWISE, Work.ELEMENTWISE),
}


def bytes_kernel(op: Op) -> list[Kernel]:
    work = _BYTES_WORK[op.kind][1 if _is_backward(op) else 0]
    if work == Work.DROPOUT:
        return [_dropout(op)]
    if work == Work.ELEMENTWISE and op.is_uneven and not op.name.startswith(FUSED):  # compilers load as they like
        return [by_elements(op, Work.UNEVEN)]
    return [op.kernel(work)]


def _dropout(op: Op) -> Kernel:
    """Forward draws a number for each element; backward multiplies by a mask of another dtype."""
    if not _is_backward(op):
        return by_elements(op, Work.DROPOUT)
    return by_elements(op, Work.UNEVEN) if op.item_bytes == 2 else op.kernel(Work.ELEMENTWISE)


def by_elements(op: Op, work: Work, *, tensor: int | None = None, **changes: Any) -> Kernel:
    """Threads take elements of the output, or of that tensor, one at a time."""
    n_elements = op.dims(op.outputs[0] if tensor is None else tensor).prod(axis=1)
    return op.kernel(work, shape=(n_elements, 1.0, 1.0, 1.0), **changes)


def optimizer(op: Op) -> list[Kernel]:
    """Over a list of tensors, each of which takes a turn; counters of steps are on the host."""
    n_tensors = float(sum(op.dims(tensor).shape[1] > 0 for tensor in op.outputs))
    return [op.kernel(Work.OPTIMIZER, shape=(n_tensors, 1.0, 1.0, 1.0))]


def reduction(op: Op) -> list[Kernel]:
    """The loss of labels is a sum that reads one value a row: its rows wait for each other, not for bytes."""
    if op.name == "aten.nll_loss_forward" and op.attributes.get("reduction", 1) != _NO_REDUCTION:
        return [op.kernel(Work.LABEL_LOSS, shape=(label_waits(op.dims(op.inputs[0])[:, 0]), 1.0, 1.0, 1.0))]
    return [op.kernel(Work.FACTORY if op.name == "aten.nll_loss_backward" else Work.REDUCTION)]


def label_waits(n_rows: Any) -> Any:
    """How many labels each thread of PyTorch's one block takes, one after the other."""
    return n_rows / np.clip(n_rows / _LABELS_A_THREAD, *_LABEL_THREADS)


def embedding(op: Op) -> list[Kernel]:
    """The gradient of a table is zeros, into which the rows' gradients are put once their indices are sorted."""
    if op.name == "aten.embedding_dense_backward":
        table, rows = op.sizes_of(op.outputs[0]), op.sizes_of(op.inputs[0])
        put = op.kernel(Work.EMBEDDING_BACKWARD, shape=(SORTING_KERNELS, 1.0, 1.0, 1.0), bytes=rows)
        return [op.kernel(Work.FACTORY, bytes=table), put]
    if _is_backward(op):
        return [op.kernel(Work.EMBEDDING_BACKWARD, shape=(0.0, 1.0, 1.0, 1.0))]
    return [by_elements(op, Work.EMBEDDING)]


def _is_backward(op: Op) -> bool:
    return "backward" in op.name or op.name.startswith(("aten.index_put", "aten.scatter", "aten.index_add"))


_PUT_IN_ZEROS = ("aten.slice_backward", "aten.select_backward")


def copy(op: Op) -> list[Kernel]:
    if op.name in _PUT_IN_ZEROS:
        zeros, part = op.sizes_of(op.outputs[0]), op.sizes_of(op.inputs[0])
        return [op.kernel(Work.FACTORY, bytes=zeros), _copy(op, tensor=op.inputs[0], bytes=2.0 * part)]
    return [_copy(op)]


def _copy(op: Op, **changes: Any) -> Kernel:
    work = _copy_work(op)
    if work in ELEMENT_WORKS:
        return by_elements(op, work, **changes)
    changes.pop("tensor", None)
    return op.kernel(work, **changes)


def _copy_work(op: Op) -> Work:
    if op.is_cast and not op.is_strided:
        return Work.CAST
    if op.is_strided or op.name in _PUT_IN_ZEROS:
        return Work.UNEVEN if op.item_bytes == 2 else Work.STRIDED_COPY
    return Work.COPY


def normalisation(op: Op) -> list[Kernel]:
    is_backward = op.name.endswith("backward")
    if "batch_norm" in op.name:
        if not op.attributes.get("training", True):
            return [op.kernel(Work.BATCH_NORM_INFERENCE)]
        return [by_elements(op, Work.BATCH_NORM_BACKWARD if is_backward else Work.BATCH_NORM)]
    if "group_norm" in op.name:
        return [op.kernel(Work.LAYER_NORM_BACKWARD if is_backward else Work.LAYER_NORM)]
    is_rms = "rms_norm" in op.name
    work = Work.RMS_NORM if is_rms else Work.LAYER_NORM
    rows = op.dims(op.inputs[0])[:, :-1].prod(axis=1)
    return [op.kernel(Work(work + is_backward), shape=(rows, 1.0, 1.0, 1.0))]


def softmax_work(width: float, item_bytes: int) -> Work:
    """By the length of a row: held in registers, read twice, or lost by the cache between its reads."""
    if width * item_bytes > _HUGE_ROW_BYTES:
        return Work.SOFTMAX_HUGE
    return Work.SOFTMAX_LONG if width > _LONG_ROW else Work.SOFTMAX


def softmax(op: Op) -> list[Kernel]:
    if "backward" in op.name:
        return [op.kernel(Work.SOFTMAX_BACKWARD)]
    return [op.kernel(softmax_work(float(op.dims(op.inputs[0])[0, -1]), op.item_bytes))]
