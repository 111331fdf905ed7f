"""A lowered step as Inductor's scheduler sees it: pointwise loops, reductions, and calls of a library.

Inductor takes normalisations, softmax and losses apart into reductions and pointwise arithmetic, and writes kernels
for all of that itself. Matrix products, convolutions, attention, recurrent layers, sorting and scattered writes stay
calls of a library ("extern"). Read from torch/_inductor (lowering.py, decomposition.py, kernel/conv.py) of PyTorch
2.13. Views are nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from traincast.trace.graph import Graph
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.inductor.layout import runs_channels_last

PROBE_BATCH = 97  # sizes are compared at this batch: a prime, so that equal ones are hardly ever equal by chance
MOST_CAT_INPUTS = 8  # Inductor's max_pointwise_cat_inputs: longer concatenations are written piece by piece


class Role(IntEnum):
    POINTWISE = 0
    REDUCTION = 1
    EXTERN = 2


class Part(IntEnum):
    """AOTAutograd makes two graphs of a training step, and the optimizer is not compiled with the model."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One loop or one call. A reduction makes `numel` results of `depth` elements each; a pointwise loop has depth 1.

    `crosses`: it sums across rows, as gradients of biases do; Inductor splits such a sum in two kernels and joins
    little to it. `gathers`: it reads elsewhere than where it writes (windows, indices), so what it reads must be in
    memory. `picks`: of its first input it reads only as much as it writes. `is_random`: it cannot be run again.
    """

    op: int
    part: Part
    role: Role
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    numel: int = 1
    depth: int = 1
    crosses: bool = False
    gathers: bool = False
    picks: bool = False
    is_random: bool = False
    n_cat: int = 0  # tensors that it joins end to end


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in text.split())


_LIBRARY = {
    OpKind.GEMM,
    OpKind.BATCHED_GEMM,
    OpKind.CONVOLUTION_BACKWARD,
    OpKind.ATTENTION,
    OpKind.RECURRENT,
    OpKind.OPTIMIZER,
    OpKind.UNCOSTED,
}
_SILENT = {OpKind.VIEW, OpKind.ALLOCATION}
# Of kinds that Inductor writes kernels for, the ops that it leaves to the library or that write out of order.
_LEFT_OUT = _names(
    "sort topk cumsum cumprod scatter scatter_ scatter_add scatter_add_ index_put index_put_ _index_put_impl_"
    " index_add index_add_ embedding_dense_backward embedding_backward _embedding_bag _embedding_bag_dense_backward"
    " index_select_backward col2im upsample_bilinear2d_backward upsample_bicubic2d_backward"
)
_PICKS = _names("embedding index index_select gather take _unsafe_index")
_RANDOM = _names("native_dropout rand randn rand_like randn_like bernoulli bernoulli_ randint")
_POINTWISE_LOSSES = {"aten.nll_loss_backward", "aten.nll_loss2d_backward", "aten.mse_loss_backward"}
_ROW_LOSSES = {"aten.nll_loss_forward", "aten.nll_loss2d_forward"}  # one element of every row is looked up


_PARTS = (Part.FORWARD, Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER)  # of a phase


def nodes_of(graph: Graph) -> list[Node]:
    """All nodes in the order of the ops."""
    numel, is_channels_last = graph.numel(np.array([PROBE_BATCH]))[0].tolist(), runs_channels_last(graph)
    part = [_PARTS[phase] for phase in graph.op_phase.tolist()]
    names = [graph.names[name] for name in graph.op_name.tolist()]
    rows = zip(op_kinds(graph), names, graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True)
    nodes: list[Node] = []
    for op, (kind, name, inputs, outputs) in enumerate(rows):
        if kind in _SILENT:
            continue
        how: dict[str, Any] = {"op": op, "part": part[op]}
        if part[op] == Part.OPTIMIZER or kind in _LIBRARY or name in _LEFT_OUT or not outputs:
            nodes.append(Node(role=Role.EXTERN, reads=tuple(inputs), writes=tuple(outputs), **how))
        else:
            make = _MAKERS.get(kind, _pointwise)
            nodes.extend(make(_Op(graph, name, tuple(inputs), tuple(outputs), numel, is_channels_last, how)))
    return nodes


@dataclass(frozen=True, slots=True)
class _Op:
    graph: Graph
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    numel: list[int]
    is_channels_last: bool
    how: dict[str, Any]

    @property
    def attributes(self) -> dict[str, Any]:
        return self.graph.attributes_of(self.how["op"])

    def node(self, role: Role, **changes: Any) -> Node:
        return Node(**{"role": role, "reads": self.inputs, "writes": self.outputs, **self.how, **changes})

    def reduction(self, n_rows: int, **changes: Any) -> Node:
        reads = changes.get("reads", self.inputs)
        largest = max((self.numel[tensor] for tensor in reads), default=1)
        return self.node(Role.REDUCTION, numel=max(n_rows, 1), depth=max(largest // max(n_rows, 1), 1), **changes)


def _pointwise(op: _Op) -> Iterator[Node]:
    yield op.node(
        Role.POINTWISE,
        numel=max(op.numel[tensor] for tensor in op.outputs),
        gathers=op.name in _PICKS,
        picks=op.name in _PICKS,
        is_random=op.name in _RANDOM,
        n_cat=len(op.inputs) if op.name in ("aten.cat", "aten.stack") else 0,
    )


def _factory(op: _Op) -> Iterator[Node]:
    """Of a tensor that it is to be like it needs the shape only."""
    numel = max(op.numel[tensor] for tensor in op.outputs)
    yield op.node(Role.POINTWISE, reads=(), numel=numel, is_random=op.name in _RANDOM)


def _pooling(op: _Op) -> Iterator[Node]:
    yield op.node(Role.POINTWISE, numel=op.numel[op.outputs[0]], gathers=True)


def _convolution(op: _Op) -> Iterator[Node]:
    """Its bias is taken off and added by a kernel of Inductor's own, since cuDNN is slower with it."""
    image, weight, *bias = op.inputs
    yield op.node(Role.EXTERN, reads=(image, weight))
    if bias:
        result = op.outputs[0]
        yield op.node(Role.POINTWISE, reads=(result, *bias), writes=(result,), numel=op.numel[result])


def _reduction(op: _Op) -> Iterator[Node]:
    source, result = op.inputs[0], op.outputs[0]
    if op.name in _ROW_LOSSES:
        yield op.node(Role.POINTWISE, numel=op.numel[op.inputs[1]])
    elif op.name in _POINTWISE_LOSSES or op.numel[source] <= op.numel[result]:
        yield op.node(Role.POINTWISE, numel=op.numel[result])
    else:
        yield op.reduction(op.numel[result], crosses=_sums_across(op))


def _sums_across(op: _Op) -> bool:
    """Whether dimensions that are kept lie behind ones that are summed. Without a list of dimensions all are summed."""
    rank = int(op.graph.dim_start[op.inputs[0] + 1] - op.graph.dim_start[op.inputs[0]])
    dims = op.attributes.get("dim")
    if dims is None or dims == []:
        return False
    summed = {int(dim) % rank for dim in (dims if isinstance(dims, list) else [dims])} if rank else set()
    if op.is_channels_last and rank == 4:
        return bool(summed & {2, 3}) and 1 not in summed  # sums over an image of which every pixel has all channels
    return summed != set(range(rank - len(summed), rank))


def _softmax(op: _Op) -> Iterator[Node]:
    """The largest and the sum of each row have no tensor of their own in a trace: their reduction writes nothing."""
    source = op.inputs[0]
    dims = slice(op.graph.dim_start[source], op.graph.dim_start[source + 1])
    lengths = op.graph.dim_base[dims] + op.graph.dim_slope[dims] * PROBE_BATCH
    length = int(lengths[int(op.attributes.get("dim", -1))]) if len(lengths) else 1
    n_rows = op.numel[source] // max(length, 1)
    if op.name.endswith("backward_data"):
        yield op.reduction(n_rows)
    else:
        yield op.reduction(n_rows, writes=())
        yield op.node(Role.POINTWISE, numel=op.numel[op.outputs[0]])


def _normalisation(op: _Op) -> Iterator[Node]:
    full = max(op.numel[tensor] for tensor in op.outputs)
    large = tuple(tensor for tensor in op.outputs if op.numel[tensor] == full)
    small = tuple(tensor for tensor in op.outputs if op.numel[tensor] != full)
    is_backward = op.name.endswith("backward")
    if "batch_norm" in op.name:
        trains = op.attributes.get("train" if is_backward else "training", True)
        if trains and small:
            yield op.reduction(op.numel[small[-1]], writes=small, crosses=True)
            yield op.node(Role.POINTWISE, reads=(*op.inputs, *small), writes=large, numel=full)
        else:
            yield op.node(Role.POINTWISE, numel=full)
    elif is_backward:
        yield op.reduction(
            op.numel[op.inputs[2]], writes=large
        )  # the gradient, what was normalised, statistics of rows
        if small:
            yield op.reduction(op.numel[small[-1]], writes=small, crosses=True)
    else:
        is_turned = op.is_channels_last and "group_norm" in op.name  # a group is then no row
        yield op.reduction(op.numel[small[-1]] if small else 1, writes=small, reads=op.inputs[:1], crosses=is_turned)
        yield op.node(Role.POINTWISE, reads=(*op.inputs, *small), writes=large, numel=full)


_MAKERS: dict[OpKind, Callable[[_Op], Iterator[Node]]] = {
    OpKind.CONVOLUTION: _convolution,
    OpKind.FACTORY: _factory,
    OpKind.POOLING: _pooling,
    OpKind.REDUCTION: _reduction,
    OpKind.SOFTMAX: _softmax,
    OpKind.NORMALISATION: _normalisation,
}
