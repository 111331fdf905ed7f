"""Whether two steps are the same but for the order in which their tensors and storages are numbered."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from traincast.trace.folding.units import gather_rows
from traincast.trace.graph import Graph, Ints, Ragged


def differences(one: Graph, other: Graph) -> list[str]:
    """The fields in which two steps differ."""
    left, right = canonical(one), canonical(other)
    found = []
    for field in fields(Graph):
        a, b = getattr(left, field.name), getattr(right, field.name)
        if isinstance(a, Ragged):
            same = np.array_equal(a.start, b.start) and np.array_equal(a.values, b.values)
        elif isinstance(a, np.ndarray):
            same = np.array_equal(a, b)
        else:
            same = a == b
        if not same:
            found.append(field.name)
    return found


def canonical(graph: Graph) -> Graph:
    """The same step with what was there before it first, then what ops make in their order; names by first use."""
    is_made = np.zeros(graph.n_tensors, dtype=bool)
    is_made[graph.op_outputs.values] = True
    order = np.concatenate([np.flatnonzero(~is_made), graph.op_outputs.values])
    tensor_new = _inverse(order)
    storages, first = np.unique(graph.tensor_storage[order], return_index=True)
    storage_order = storages[np.argsort(first, kind="stable")]
    storage_new = _inverse(storage_order)
    dim_start, dims = gather_rows(graph.dim_start, order)
    stride_start, strides = gather_rows(graph.stride_start, order)
    names, op_name = _by_first_use(graph.names, graph.op_name)
    attributes, op_attribute = _by_first_use(graph.attributes, graph.op_attribute)
    return replace(
        graph,
        names=names,
        attributes=attributes,
        op_name=op_name,
        op_attribute=op_attribute,
        op_inputs=Ragged(graph.op_inputs.start, tensor_new[graph.op_inputs.values]),
        op_outputs=Ragged(graph.op_outputs.start, tensor_new[graph.op_outputs.values]),
        tensor_dtype=graph.tensor_dtype[order],
        tensor_storage=storage_new[graph.tensor_storage[order]],
        dim_start=dim_start,
        dim_base=graph.dim_base[dims],
        dim_slope=graph.dim_slope[dims],
        stride_start=stride_start,
        stride_base=graph.stride_base[strides],
        stride_slope=graph.stride_slope[strides],
        storage_owner=tensor_new[graph.storage_owner[storage_order]],
        storage_alloc=graph.storage_alloc[storage_order],
        storage_free=graph.storage_free[storage_order],
        storage_kind=graph.storage_kind[storage_order],
    )


def _inverse(order: Ints) -> Ints:
    new = np.zeros(len(order), dtype=np.int64)
    new[order] = np.arange(len(order))
    return new


def _by_first_use(texts: tuple[str, ...], rows: Ints) -> tuple[tuple[str, ...], Ints]:
    used, first = np.unique(rows, return_index=True)
    order = used[np.argsort(first, kind="stable")]
    new = np.zeros(max(len(texts), 1), dtype=np.int64)
    new[order] = np.arange(len(order))
    return tuple(texts[number] for number in order.tolist()), new[rows]
