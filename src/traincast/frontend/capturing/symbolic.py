"""Joins recordings of the same step at several batch sizes into one that holds for all: each number a + b * batch."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from traincast.errors import BatchDependentError
from traincast.frontend.capturing.recorder import Recording
from traincast.trace.dtypes import ITEM_BYTES
from traincast.trace.graph import Graph, Ints, Phase, Ragged, StorageKind


def join(recordings: dict[int, Recording], module_names: list[str], requests_follow: list[bool]) -> Graph:
    """A graph from recordings at two batch sizes, checked at the others. From one, it holds for that batch."""
    batches = sorted(recordings)
    first = recordings[batches[0]]
    for batch in batches[1:]:
        _same_structure(first, recordings[batch], (batches[0], batch), module_names)
    dim_base, dim_slope, bent = _fit([_flat(recordings[batch].shapes) for batch in batches], batches)
    if bent is not None:
        raise _not_linear(first, bent, batches, module_names)
    stride_base, stride_slope, _ = _fit([_flat(recordings[batch].strides) for batch in batches], batches)
    attributes = [
        _attribute_text([recording.ops[op] for recording in recordings.values()], batches, requests_follow)
        for op in range(first.n_ops)
    ]
    names, op_name = _distinct([_canonical(name, attributes) for name, attributes in first.ops])
    texts, op_attribute = _distinct(attributes)
    # The first run in a process can hold on to a tensor (caches being filled): the shortest life is the true one.
    free = np.min([recording.storage_free for recording in recordings.values()], axis=0)
    graph = Graph(
        names=names,
        attributes=texts,
        op_name=op_name,
        op_attribute=op_attribute,
        op_phase=_ints(first.op_phase),
        op_module=_ints(first.op_module),
        op_forward=_ints(first.op_forward),
        op_recomputed=_ints(first.op_recomputed),
        op_inputs=Ragged.of(first.op_inputs),
        op_outputs=Ragged.of(first.op_outputs),
        tensor_dtype=_ints(first.tensor_dtype),
        tensor_storage=_ints(first.tensor_storage),
        dim_start=Ragged.of([list(shape) for shape in first.shapes]).start,
        dim_base=dim_base,
        dim_slope=dim_slope,
        stride_start=Ragged.of([list(stride) for stride in first.strides]).start,
        stride_base=stride_base,
        stride_slope=stride_slope,
        storage_owner=_ints(first.storage_owner),
        storage_alloc=_ints(first.storage_alloc),
        storage_free=free,
        storage_kind=_storage_kinds(first, free),
    )
    for batch in batches:
        _check_storages(graph, recordings[batch], batch)
    return graph


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _flat(rows: list[tuple[int, ...]]) -> Ints:
    return _ints([value for row in rows for value in row])


def _fit(rows: list[Ints], batches: list[int]) -> tuple[Ints, Ints, int | None]:
    """Base and slope of each number, and the first that is not on a line."""
    if len(batches) == 1:
        return rows[0], np.zeros_like(rows[0]), None
    slope = (rows[1] - rows[0]) // (batches[1] - batches[0])
    base = rows[0] - slope * batches[0]
    misses = [base + slope * batch != row for batch, row in zip(batches, rows, strict=True)]
    bent = np.flatnonzero(np.any(misses, axis=0))
    return base, slope, int(bent[0]) if len(bent) else None


def _not_linear(recording: Recording, dim: int, batches: list[int], module_names: list[str]) -> BatchDependentError:
    starts = np.cumsum([len(shape) for shape in recording.shapes])
    tensor = int(np.searchsorted(starts, dim, side="right"))
    op = next((op for op, outputs in enumerate(recording.op_outputs) if tensor in outputs), None)
    name = "an input" if op is None else f"the output of {recording.ops[op][0]}"
    place = "the model" if op is None else f"'{module_names[recording.op_module[op]] or 'the model'}'"
    return BatchDependentError(
        f"A dimension of {name} in {place} does not grow linearly with the batch (traced at {batches}): shapes must be "
        "linear in the batch size, as they are when samples are independent."
    )


def _same_structure(one: Recording, other: Recording, batches: tuple[int, int], module_names: list[str]) -> None:
    for op, (left, right) in enumerate(zip(one.ops, other.ops, strict=False)):
        if (
            left[0] != right[0]
            or one.op_inputs[op] != other.op_inputs[op]
            or one.op_outputs[op] != other.op_outputs[op]
        ):
            place = module_names[one.op_module[op]] or "the model"
            other_op = right[0] if right[0] != left[0] else "the same on other tensors"
            raise BatchDependentError(
                f"'{place}' runs {left[0]} at batch {batches[0]} but {other_op} at batch {batches[1]}: the list of ops "
                "must not depend on the batch (a loop over samples does that)."
            )
    same = one.n_ops == other.n_ops and one.tensor_storage == other.tensor_storage
    if not same or [len(s) for s in one.shapes] != [len(s) for s in other.shapes]:
        raise BatchDependentError(
            f"The model runs {one.n_ops} ops at batch {batches[0]} and {other.n_ops} at batch {batches[1]}: the "
            "number of ops must not depend on the batch (a loop over samples does that)."
        )


def _attribute_text(calls: list[tuple[str, dict[str, Any]]], batches: list[int], requests_follow: list[bool]) -> str:
    merged = {name: _merge([call[1].get(name) for call in calls], batches) for name in calls[0][1]}
    request = merged.pop("request", None)
    if request is not None:
        merged["follows_model"] = requests_follow[request] if request < len(requests_follow) else False
    return json.dumps(merged, sort_keys=True)


def _merge(values: list[Any], batches: list[int]) -> Any:
    """Equal values stay; whole numbers that differ become ["batch", a, b]; other differences do not matter here."""
    first = values[0]
    if all(value == first for value in values[1:]):
        return first
    if isinstance(first, list):
        return [_merge(list(items), batches) for items in zip(*values, strict=False)]
    if isinstance(first, int):
        slope = (values[1] - first) // (batches[1] - batches[0])
        return ["batch", first - slope * batches[0], slope]
    return first


def _canonical(name: str, attributes: dict[str, Any]) -> str:
    """One name for what differs only by who implements it, and no name for which variant saves what.

    A request for a dtype is recorded on an alias; an alias without one is an ordinary view (`x[:, :]`).
    """
    if name == "aten.alias" and "request" in attributes:
        return "traincast.request_dtype"
    return {
        "aten.native_batch_norm": "aten.batch_norm",
        "aten._native_batch_norm_legit": "aten.batch_norm",
        "aten._native_batch_norm_legit_functional": "aten.batch_norm",
        "aten._batch_norm_with_update": "aten.batch_norm",
        "aten.cudnn_batch_norm": "aten.batch_norm",
        "aten.native_batch_norm_backward": "aten.batch_norm_backward",
        "aten.batch_norm_backward": "aten.batch_norm_backward",
        "aten.cudnn_batch_norm_backward": "aten.batch_norm_backward",
    }.get(name, name)


def _distinct(values: list[str]) -> tuple[tuple[str, ...], Ints]:
    table = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return tuple(table), _ints([table[value] for value in values])


def _storage_kinds(recording: Recording, free: Ints) -> Ints:
    """What is made before backward and still there when it begins is an activation."""
    kinds = _ints(recording.storage_kind)
    phases = _ints(recording.op_phase)
    backward = np.flatnonzero(phases == Phase.BACKWARD)
    start = int(backward[0]) if len(backward) else recording.n_ops
    alloc = _ints(recording.storage_alloc)
    kept = (kinds == StorageKind.TEMPORARY) & (alloc < start) & (free > start)
    return np.where(kept, int(StorageKind.ACTIVATION), kinds)


def _check_storages(graph: Graph, recording: Recording, batch: int) -> None:
    """The owner's elements must be the storage's bytes; where they are not (padding), we say so rather than guess."""
    owner = graph.storage_owner
    size = graph.numel(np.array([batch]))[0, owner] * ITEM_BYTES[graph.tensor_dtype[owner]]
    actual = _ints(recording.storage_bytes)
    # An expanded tensor (stride 0) is larger than its storage only where it came from outside.
    wrong = np.flatnonzero((size != actual) & (graph.storage_alloc >= 0))
    if len(wrong):
        op = int(graph.storage_alloc[wrong[0]])
        raise BatchDependentError(
            f"{graph.name_of(op)} allocates {actual[wrong[0]]} bytes for a tensor of {size[wrong[0]]}: storages that "
            "are larger than their first tensor are not supported."
        )
