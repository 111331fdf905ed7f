"""Writes the ops that a backend runs for one neutral op which it does not fuse."""

from __future__ import annotations

from typing import Any

from traincast.trace.lowering.program import Program

Dims = list[tuple[int, int]]  # (base, slope) of each dimension


class Emitter:
    """Writes ops for one neutral op, and makes the tensors that it did not have."""

    def __init__(self, program: Program, op: int) -> None:
        self.program, self.graph = program, program.neutral
        self.where: dict[str, Any] = {
            "phase": int(self.graph.op_phase[op]),
            "module": int(self.graph.op_module[op]),
            "origin": op,
            "alone": True,
        }

    def dims(self, tensor: int) -> Dims:
        return self.program.dims_of(self.program.tensor_shape[tensor])

    def new(self, dims: Dims, dtype: int) -> int:
        return self.program.tensor(self.program.shape(dims), dtype, self.program.storage())

    def op(self, name: str, inputs: list[int], output: int) -> int:
        self.program.emit(f"aten.{name}", inputs, [output], **self.where)
        return output

    def cast(self, tensor: int, dtype: int) -> int:
        if self.program.tensor_dtype[tensor] == dtype:
            return tensor
        return self.op("_to_copy", [tensor], self.program.like(tensor, dtype=dtype))

    def transposed(self, tensor: int) -> int:
        """The same memory with its last two dimensions exchanged."""
        outer, rows, columns = self.dims(tensor)
        shape = self.program.shape([outer, columns, rows])
        view = self.program.tensor(shape, self.program.tensor_dtype[tensor], self.program.tensor_storage[tensor])
        return self.op("transpose", [tensor], view)
