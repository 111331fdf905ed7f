"""What the ops of a step ask of a CPU, as amounts of work that each have one price (`prices.py`).

A step on a CPU is one sequence: every op starts when the one before has ended, and its time is the sum of what it asks
for: a call, products, bytes through caches and memory. So the time of a step is linear in a few dozen
amounts, and their prices can be read off measured steps (`fit.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.kernels.cpu.memory_work import far_bytes
from traincast.kernels.cpu.prices import price_of
from traincast.kernels.cpu.product_work import product_terms
from traincast.kernels.cpu.terms import Term, Terms
from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.once import once_per_graph
from traincast.trace.traffic import op_bytes, tensor_bytes

_PHASES = ("forward", "loss", "backward", "optimizer")
_THREADED_ELEMENTS = 32_768  # ATen's grain: larger ops are shared by its threads
_ITEM_BYTES = 4


def cpu_work(graph: Graph, batch_sizes: Ints) -> Terms:
    """What every op of a graph that was lowered for a CPU asks for."""
    facts = _facts(graph)
    moved, sizes = op_bytes(graph, batch_sizes).astype(float), tensor_bytes(graph, batch_sizes).astype(float)
    terms = [Term(price, ops, np.ones((len(batch_sizes), len(ops)))) for price, ops in facts.counted.items()]
    terms += product_terms(graph, batch_sizes)
    terms += [Term(price, ops, moved[:, ops]) for price, ops in facts.moving.items()]
    terms += [Term(price, ops, sizes[:, facts.result[ops]] * facts.per_byte[ops]) for price, ops in facts.made.items()]
    terms.append(far_bytes(moved))
    if len(facts.running):
        largest = np.maximum.reduceat(sizes[:, facts.touched], facts.first_touched, axis=1)
        is_threaded = (largest > _THREADED_ELEMENTS * _ITEM_BYTES).astype(float)
        terms.append(Term("threads", facts.running, is_threaded))
    return Terms.join(terms)


@dataclass(frozen=True, eq=False, slots=True)
class _Facts:
    """What does not depend on the batch size. Ops by price."""

    counted: Mapping[str, Ints]
    moving: Mapping[str, Ints]
    made: Mapping[str, Ints]  # work that grows with the result
    result: Ints  # of every op
    per_byte: Floats  # elements, or places of a window, for each byte of the result
    running: Ints  # ops that do something
    touched: Ints  # their tensors, op after op
    first_touched: Ints


@once_per_graph
def _facts(graph: Graph) -> _Facts:
    kinds = op_kinds(graph)
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    is_silent = np.array([kind in (OpKind.VIEW, OpKind.ALLOCATION) for kind in kinds], dtype=bool)
    starts, strides = graph.stride_start.tolist(), graph.stride_base.tolist()
    moving: dict[str, list[int]] = {}
    made: dict[str, list[int]] = {}
    per_byte = np.full(graph.n_ops, 1 / _ITEM_BYTES)
    running = [op for op in np.flatnonzero(~is_silent).tolist() if inputs[op] or outputs[op]]
    for op in running:
        last = [strides[starts[tensor + 1] - 1] for tensor in inputs[op] if starts[tensor + 1] > starts[tensor]]
        order = "elementwise" if not last else "strided" if set(last) <= {0, 1} else "transposed"
        takes_statistics = graph.attributes_of(op).get("training", True)
        price = price_of(kinds[op], graph.name_of(op), order=order, takes_statistics=takes_statistics)
        if price is None:
            continue
        if price.startswith(("element.", "window.")) and outputs[op]:
            made.setdefault(price, []).append(op)
            if price.startswith("window."):
                per_byte[op] *= float(np.prod(graph.attributes_of(op).get("kernel_size", 1)))
                price = price.replace("window.", "bytes.pooling_")
            else:
                price = "bytes.elementwise"
        moving.setdefault(price, []).append(op)
    touched = [inputs[op] + outputs[op] for op in running]
    return _Facts(
        counted=_counted(graph, is_silent),
        moving=_arrays(moving),
        made=_arrays(made),
        result=np.array([tensors[0] if tensors else 0 for tensors in outputs], dtype=np.int64),
        per_byte=per_byte,
        running=np.array(running, dtype=np.int64),
        touched=np.array([tensor for tensors in touched for tensor in tensors], dtype=np.int64),
        first_touched=np.cumsum([0, *(len(tensors) for tensors in touched)])[:-1],
    )


def _arrays(by_price: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {price: np.array(ops, dtype=np.int64) for price, ops in by_price.items()}


def _counted(graph: Graph, is_silent: Ints) -> dict[str, Ints]:
    """Work that is the same whatever the sizes."""
    phases = graph.op_phase
    found = {"call.view": np.flatnonzero(is_silent)}
    for phase, name in zip(Phase, _PHASES, strict=True):
        ops = np.flatnonzero(phases == phase)
        found[f"phase.{name}"] = ops[:1]
        call = "call.forward" if phase == Phase.LOSS else f"call.{name}"
        found[call] = np.concatenate([found.get(call, ops[:0]), ops[~is_silent[ops]]])
    forward = np.flatnonzero(phases == Phase.FORWARD)
    kinds = op_kinds(graph)
    for kind in (OpKind.NORMALISATION, OpKind.POOLING):
        found[f"call.{kind.value}"] = np.array([op for op, own in enumerate(kinds) if own == kind], dtype=np.int64)
    found["call.module"] = forward[np.flatnonzero(np.diff(graph.op_module[forward], prepend=-1))]
    updates = np.flatnonzero(phases == Phase.OPTIMIZER)
    outputs = graph.op_outputs.rows()
    is_weight = graph.storage_kind[graph.tensor_storage] == StorageKind.WEIGHT
    updated = {int(graph.tensor_storage[t]): op for op in updates.tolist() for t in outputs[op] if is_weight[t]}
    found["call.parameter"] = np.array(sorted(updated.values()), dtype=np.int64)
    return found
