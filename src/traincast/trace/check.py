"""What a valid trace and a valid question about it are, in code."""

from __future__ import annotations

import numbers

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.trace.graph import Graph, Ints

MAX_BATCH_SIZE = 10**7  # above it int64 products of large layers could overflow, and nobody means it


def check_batch_size(batch_size: object) -> int:
    """The batch size as an int, or one sentence why not."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, numbers.Integral):
        raise InputError(f"batch size {batch_size!r} is not a whole number: give one from 1 to {MAX_BATCH_SIZE:,}.")
    if not 1 <= int(batch_size) <= MAX_BATCH_SIZE:
        raise InputError(
            f"batch size {int(batch_size):,} is out of range: give a whole number from 1 to {MAX_BATCH_SIZE:,}."
        )
    return int(batch_size)


def check_graph(graph: Graph, *, where: str) -> None:
    """Raises when an index points outside its table or the order of events cannot be: a file that is not ours."""
    n_ops, n_tensors, n_storages = graph.n_ops, graph.n_tensors, graph.n_storages
    n_dims, n_strides = len(graph.dim_base), len(graph.stride_base)
    rules = {
        "op names": _within(graph.op_name, len(graph.names), n_ops),
        "op attributes": _within(graph.op_attribute, len(graph.attributes), n_ops),
        "op phases": _within(graph.op_phase, 4, n_ops),
        "forward ops": _within(graph.op_forward + 1, n_ops + 1, n_ops),
        "recomputed flags": _within(graph.op_recomputed, 2, n_ops),
        "op inputs": _within(graph.op_inputs.values, n_tensors)
        and _offsets(graph.op_inputs.start, n_ops, len(graph.op_inputs.values)),
        "op outputs": _within(graph.op_outputs.values, n_tensors)
        and _offsets(graph.op_outputs.start, n_ops, len(graph.op_outputs.values)),
        "tensor dtypes": _within(graph.tensor_dtype, 14, n_tensors),
        "tensor storages": _within(graph.tensor_storage, n_storages, n_tensors),
        "dimensions": _offsets(graph.dim_start, n_tensors, n_dims) and len(graph.dim_slope) == n_dims,
        "strides": _offsets(graph.stride_start, n_tensors, n_strides) and len(graph.stride_slope) == n_strides,
        "storage owners": _within(graph.storage_owner, n_tensors, n_storages),
        "storage kinds": _within(graph.storage_kind, 7, n_storages),
        "lifetimes": _within(graph.storage_alloc + 1, n_ops + 1, n_storages)
        and _within(graph.storage_free, n_ops + 1, n_storages)
        and bool(np.all(graph.storage_free > graph.storage_alloc)),
    }
    broken = [name for name, holds in rules.items() if not holds]
    if broken:
        raise FileFormatError(f"{where} is damaged: its {', '.join(broken)} do not fit together. Save the trace again.")


def _within(values: Ints, limit: int, length: int | None = None) -> bool:
    if length is not None and len(values) != length:
        return False
    return bool(np.all((values >= 0) & (values < limit)))


def _offsets(start: Ints, n_rows: int, n_values: int) -> bool:
    if len(start) != n_rows + 1 or start[0] != 0 or start[-1] != n_values:
        return False
    return bool(np.all(np.diff(start) >= 0))
