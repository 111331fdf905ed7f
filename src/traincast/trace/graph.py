"""The tables of a step: ops, the tensors they read and write, and the storages that hold them.

Single assignment: an op that writes in place produces a new tensor on the old storage. Every dimension is
`base + slope * batch`. A storage is as large as its owner, the tensor that first covered it, so a change of
dtype changes the bytes; it is alive from the op that allocated it until just before the op `free`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.trace.dtypes import ITEM_BYTES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Phase(IntEnum):
    """The part of a training step in which an op runs."""

    FORWARD = 0
    LOSS = 1
    BACKWARD = 2
    OPTIMIZER = 3


class StorageKind(IntEnum):
    """What a storage is for. Activations outlive the forward pass; temporaries do not leave their phase."""

    WEIGHT = 0
    BUFFER = 1
    INPUT = 2
    GRADIENT = 3
    OPTIMIZER_STATE = 4
    ACTIVATION = 5
    TEMPORARY = 6


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists of different lengths in two flat arrays: list i is values[start[i]:start[i + 1]]."""

    start: Ints
    values: Ints

    @staticmethod
    def of(rows: list[list[int]]) -> Ragged:
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=start[1:])
        return Ragged(start, np.array([value for row in rows for value in row], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.start) - 1

    def rows(self) -> list[list[int]]:
        """Back to lists, for code that walks one op at a time."""
        start, values = self.start.tolist(), self.values.tolist()
        return [values[low:high] for low, high in pairwise(start)]

    def picked(self, rows: Ints) -> Ragged:
        """Some of the lists, in this order."""
        lengths = self.start[rows + 1] - self.start[rows]
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=start[1:])
        return Ragged(start, self.values[np.repeat(self.start[rows] - start[:-1], lengths) + np.arange(start[-1])])

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.start)

    def sums(self, of: Floats) -> Floats:
        """What the members of each list have together; lists along the last axis."""
        total = np.zeros((*of.shape[:-1], len(self)))
        filled = np.flatnonzero(self.lengths)
        if len(filled):
            total[..., filled] = np.add.reduceat(of[..., self.values], self.start[filled], axis=-1)
        return total


@dataclass(frozen=True, eq=False)
class Graph:
    """One step as arrays. Row i of every `op_` array is op i, in the order in which ops are dispatched."""

    names: tuple[str, ...]  # distinct op names
    attributes: tuple[str, ...]  # distinct argument sets as JSON; a list ["batch", a, b] stands for a + b * batch
    op_name: Ints
    op_attribute: Ints
    op_phase: Ints
    op_module: Ints
    op_forward: Ints  # the forward op that a backward op belongs to; -1 without one
    op_recomputed: Ints  # 1 where gradient checkpointing runs a forward op again
    op_inputs: Ragged
    op_outputs: Ragged
    tensor_dtype: Ints
    tensor_storage: Ints
    dim_start: Ints
    dim_base: Ints
    dim_slope: Ints
    stride_start: Ints  # strides of tensors that are not contiguous; contiguous ones have none
    stride_base: Ints
    stride_slope: Ints
    storage_owner: Ints
    storage_alloc: Ints  # -1: there before the step
    storage_free: Ints  # n_ops: outlives the step
    storage_kind: Ints

    @property
    def n_ops(self) -> int:
        return len(self.op_name)

    @property
    def n_tensors(self) -> int:
        return len(self.tensor_dtype)

    @property
    def n_storages(self) -> int:
        return len(self.storage_owner)

    @property
    def dim_lists(self) -> Ragged:
        """Where the dimensions of each tensor are."""
        return Ragged(self.dim_start, np.arange(len(self.dim_base)))

    @property
    def stride_lists(self) -> Ragged:
        """Where the strides of each tensor are, if it has any."""
        return Ragged(self.stride_start, np.arange(len(self.stride_base)))

    @cached_property
    def n_bytes(self) -> int:
        """What its arrays take in memory."""
        values = [getattr(self, field.name) for field in fields(self)]
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        arrays += [array for value in values if isinstance(value, Ragged) for array in (value.start, value.values)]
        return sum(array.nbytes for array in arrays)

    def name_of(self, op: int) -> str:
        return self.names[self.op_name[op]]

    @cached_property
    def parsed_attributes(self) -> tuple[dict[str, Any], ...]:
        return tuple(json.loads(text) for text in self.attributes)

    def attributes_of(self, op: int) -> dict[str, Any]:
        return self.parsed_attributes[self.op_attribute[op]]

    def shape_of(self, tensor: int, batch_size: int) -> tuple[int, ...]:
        dims = slice(self.dim_start[tensor], self.dim_start[tensor + 1])
        return tuple((self.dim_base[dims] + self.dim_slope[dims] * batch_size).tolist())

    def dims(self, batch_sizes: Ints) -> Ints:
        """All dimensions at all batch sizes: one row a batch size."""
        return self.dim_base + self.dim_slope * batch_sizes[:, None]

    def numel(self, batch_sizes: Ints) -> Ints:
        """Elements of every tensor: one row a batch size. A tensor without dimensions has one element."""
        # A one behind the last dimension keeps reduceat inside the array; empty segments are overwritten below.
        dims = np.concatenate([self.dims(batch_sizes), np.ones((len(batch_sizes), 1), dtype=np.int64)], axis=1)
        counts = np.multiply.reduceat(dims, self.dim_start[:-1], axis=1)
        counts[:, self.dim_start[:-1] == self.dim_start[1:]] = 1
        return counts

    def storage_bytes(self, batch_sizes: Ints) -> Ints:
        """Size of every storage: one row a batch size."""
        owner = self.storage_owner
        return self.numel(batch_sizes)[:, owner] * ITEM_BYTES[self.tensor_dtype[owner]]


def gather_rows(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Ragged rows picked by number: the new starts, and where in the old values each new value is; -1 has none."""
    lengths = np.where(rows >= 0, start[rows + 1] - start[rows], 0)
    new_start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new_start[1:])
    offsets = np.arange(new_start[-1]) - np.repeat(new_start[:-1], lengths)
    return new_start, np.repeat(np.where(rows >= 0, start[rows], 0), lengths) + offsets


def evaluate(value: Any, batch_size: Any) -> Any:
    """An attribute at a batch size, or at many: ["batch", a, b] becomes a + b * batch, anywhere inside."""
    if isinstance(value, list):
        if len(value) == 3 and value[0] == "batch":
            return value[1] + value[2] * batch_size
        return [evaluate(item, batch_size) for item in value]
    return value
