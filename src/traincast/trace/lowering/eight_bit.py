"""fp8: which products are multiplied in eight bits, and what their operands go through before.

With tensor-wise scales: the largest value of an operand is looked for, then the operand is scaled and narrowed. e4m3
forward, e5m2 for gradients of outputs. Linear layers of the blocks alone: embeddings, head, attention, norms, weights,
gradients and, but for Transformer Engine, what is kept for backward stay bf16.
"""

from __future__ import annotations

from traincast.errors import InputError
from traincast.trace.dtypes import CODE, FLOAT32
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.program import SCALAR, Program
from traincast.trace.rewrite.adapter import linear_layers
from traincast.trace.trace import Trace

_FORWARD, _GRADIENT = CODE["float8_e4m3fn"], CODE["float8_e5m2"]


def eight_bit_products(trace: Trace) -> frozenset[int]:
    """Neutral ops: products of linear layers in blocks, and those of their backward."""
    graph, kinds = trace.graph, op_kinds(trace.graph)
    weights = {layer.weight for layer in linear_layers(trace)}
    storages = {int(graph.tensor_storage[weight]) for weight in weights}
    inputs, storage = graph.op_inputs.rows(), graph.tensor_storage
    is_product = [kind == OpKind.GEMM for kind in kinds]
    layers = {layer.op for layer in linear_layers(trace)}
    if not layers:
        raise InputError(
            f"precision 'fp8' narrows the linear layers of repeated blocks, and {trace.name} has none: choose bf16."
        )
    again = {
        op
        for op in range(graph.n_ops)
        if is_product[op] and graph.op_recomputed[op] and int(storage[inputs[op][-1]]) in storages
    }
    backward = {
        op
        for op in range(graph.n_ops)
        if is_product[op] and graph.op_phase[op] == Phase.BACKWARD and int(graph.op_forward[op]) in layers
    }
    return frozenset(layers | again | backward)


class Narrowing:
    """Makes eight bits of operands.

    `once`: as Transformer Engine does, each tensor once and both ways round, for forward and backward alike, with the
    scale of an earlier step; else, as torchao, anew for every product.
    """

    def __init__(self, program: Program, *, once: bool) -> None:
        self.program, self.once = program, once
        self.known: dict[int, int] = {}  # storage -> the one of its eight-bit form

    def of(self, op: int, tensor: int, *, is_gradient: bool) -> int:
        """The operand of a neutral op in eight bits."""
        program = self.program
        dtype, storage = _GRADIENT if is_gradient else _FORWARD, program.tensor_storage[tensor]
        where = {"phase": program.neutral_phase[op], "module": program.neutral_module[op], "origin": op}
        if not self.once:
            largest = program.tensor(SCALAR, FLOAT32, program.storage())
            program.emit("aten.amax", [tensor], [largest], **where)
            made = program.like(tensor, dtype=dtype)
            program.emit("aten._to_copy", [tensor, largest], [made], **where)
            return made
        if storage in self.known:
            return program.tensor(program.tensor_shape[tensor], dtype, self.known[storage])
        made = program.like(tensor, dtype=dtype)
        program.emit("aten._to_copy", [tensor], [made, program.like(tensor, dtype=dtype)], **where)
        self.known[storage] = program.tensor_storage[made]
        return made
