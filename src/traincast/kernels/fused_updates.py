"""Updates as graph frameworks run them: one fused op a variable, not a few ops over all of them.

TensorFlow's ApplyAdam and its kin read a variable, its state and its gradient once and write the first two. PyTorch's
foreach ops, which lowering writes, pass over memory several times.
"""

from __future__ import annotations

import numpy as np

from traincast.errors import InputError
from traincast.trace.dtypes import FLOAT32
from traincast.trace.graph import Graph, Phase, Ragged, StorageKind
from traincast.trace.lowering.program import SCALAR, Program

# Tensors of state that TensorFlow keeps for a variable.
N_STATES = {"sgd": 0, "momentum": 1, "adagrad": 1, "rmsprop": 2, "adam": 2, "adadelta": 2}
_N_ADAM_POWERS = 4  # Adam counts its steps in two scalars: a product and an assignment each


def check_fused_optimizer(optimizer: str) -> None:
    if optimizer not in N_STATES:
        raise InputError(f"No fused update is known for {optimizer!r}; there are: {', '.join(N_STATES)}.")


def add_fused_update(program: Program, optimizer: str, variable: int, gradient: int, *, module: int = 0) -> None:
    """Appends the op that updates one variable."""
    state = [program.like(variable) for _ in range(N_STATES[optimizer])]
    written = [program.again(tensor) for tensor in (variable, *state)]
    name = f"traincast.apply_{optimizer}_"
    program.emit(name, [variable, *state, gradient], written, phase=Phase.OPTIMIZER, module=module)


def add_step_count(program: Program, optimizer: str, *, module: int = 0) -> None:
    """What an optimizer does once a step, whatever the number of variables."""
    for _ in range(_N_ADAM_POWERS if optimizer == "adam" else 0):
        power = program.tensor(SCALAR, FLOAT32, program.storage(StorageKind.OPTIMIZER_STATE))
        program.emit("aten.mul_", [power], [program.again(power)], phase=Phase.OPTIMIZER, module=module)


def with_fused_updates(graph: Graph, optimizer: str) -> Graph:
    """The step of a graph that was lowered without an optimizer, with an update of every weight at its end."""
    check_fused_optimizer(optimizer)
    if (graph.op_phase == Phase.OPTIMIZER).any():
        raise InputError("This step has an optimizer already: lower it with the optimizer 'none'.")
    program = _copied(graph)
    for variable in weights_of(graph):
        add_fused_update(program, optimizer, variable, program.like(variable))
    add_step_count(program, optimizer)
    return program.finish()


def weights_of(graph: Graph) -> list[int]:
    """The tensors that first covered the storages of weights."""
    owners: list[int] = graph.storage_owner[graph.storage_kind == StorageKind.WEIGHT].tolist()
    return owners


def _copied(graph: Graph) -> Program:
    """A program that has written all of a graph; more ops can follow."""
    program = Program(graph)
    for kind in graph.storage_kind.tolist():
        program.storage(StorageKind(kind))
    for tensor, (dtype, storage) in enumerate(zip(graph.tensor_dtype, graph.tensor_storage, strict=True)):
        program.tensor(tensor, int(dtype), int(storage))
    rows = zip(graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True)
    for op, (inputs, outputs) in enumerate(rows):
        program.emit(
            graph.name_of(op),
            inputs,
            outputs,
            phase=int(graph.op_phase[op]),
            module=int(graph.op_module[op]),
            text=graph.attributes[graph.op_attribute[op]],
        )
    return program


def no_model() -> Graph:
    """The neutral graph behind a program that is written by hand: one op without tensors, for which nothing runs."""
    zero, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ops = dict.fromkeys(("op_attribute", "op_phase", "op_module", "op_recomputed", "op_name"), zero)
    tensors = dict.fromkeys(
        ("tensor_dtype", "tensor_storage", "dim_base", "dim_slope", "stride_base", "stride_slope", "storage_owner",
         "storage_alloc", "storage_free", "storage_kind"), none,
    )  # fmt: skip
    return Graph(
        names=("aten.detach",),
        attributes=("{}",),
        op_forward=zero - 1,
        op_inputs=Ragged.of([[]]),
        op_outputs=Ragged.of([[]]),
        dim_start=zero,
        stride_start=zero,
        **ops,
        **tensors,
    )
