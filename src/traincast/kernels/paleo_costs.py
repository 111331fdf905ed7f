"""What Paleo counts for each op: flop, and bytes read and written (Qi, Sparks, Talwalkar, ICLR 2017).

The formulas follow the authors' tool (github.com/TalwalkarLab/paleo at 7cdc7cb, `profilers/flops_profiler.py` and
`layers/conv.py`) with every convolution done as a matrix product; docs/paleo.md derives them. It counts
convolutions, matrix products, pooling, dropout and the update of the weights, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traincast.trace.dtypes import ITEM_BYTES
from traincast.trace.flop import FORMULAS
from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds


class Cost(NamedTuple):
    """Work of one op: one entry a batch size."""

    flop: Floats
    moved_bytes: Floats

    def plus(self, other: Cost) -> Cost:
        return Cost(self.flop + other.flop, self.moved_bytes + other.moved_bytes)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Costs:
    """Work of all ops: one row a batch size, one column an op. What is not counted is zero."""

    flop: Floats
    moved_bytes: Floats
    is_covered: NDArray[np.bool_]  # one entry an op


def op_costs(graph: Graph, batch_sizes: Ints) -> Costs:
    """What Paleo counts for a lowered graph. Ops that carry flop of which it knows nothing are not covered."""
    sizes = _Sizes(graph, np.asarray(batch_sizes, dtype=np.int64))
    flop, moved_bytes = np.zeros((2, len(sizes.batch_sizes), graph.n_ops))
    counted = _layer_costs(graph, sizes) | _spatial_mean_costs(graph, sizes) | _update_costs(graph, sizes)
    for op, cost in counted.items():
        flop[:, op], moved_bytes[:, op] = cost
    is_counted = np.zeros(graph.n_ops, dtype=bool)
    is_counted[list(counted)] = True
    carries_flop = np.array([name in FORMULAS for name in graph.names], dtype=bool)[graph.op_name]
    is_uncosted = np.array([kind == OpKind.UNCOSTED for kind in op_kinds(graph)], dtype=bool)
    is_covered = ~is_uncosted & (is_counted | ~carries_flop)
    return Costs(flop=flop, moved_bytes=moved_bytes, is_covered=is_covered)


class _Sizes:
    """Dimensions, elements and bytes of the tensors of a graph at several batch sizes."""

    def __init__(self, graph: Graph, batch_sizes: Ints) -> None:
        self.batch_sizes = batch_sizes
        self.n_elements = graph.numel(batch_sizes).astype(np.float64)
        self.item_bytes = ITEM_BYTES[graph.tensor_dtype]
        self._dims = graph.dims(batch_sizes).astype(np.float64)
        self._start = graph.dim_start.tolist()

    def dims(self, tensor: int) -> Floats:
        """One row a batch size, one column a dimension."""
        return self._dims[:, self._start[tensor] : self._start[tensor + 1]]

    def elements(self, tensor: int) -> Floats:
        return self.n_elements[:, tensor]

    def bytes(self, *tensors: int) -> Floats:
        """All of them, each element once. The tool has 4 bytes an element; we have those of the dtype."""
        chosen = list(tensors)
        return (self.n_elements[:, chosen] * self.item_bytes[chosen]).sum(axis=1)


class _Op(NamedTuple):
    graph: Graph
    number: int
    inputs: list[int]
    outputs: list[int]
    sizes: _Sizes

    def numbers(self, attribute: str, default: int) -> Floats:
        """An attribute with one number for each spatial dimension, or one for all of them."""
        return np.array(self.graph.attributes_of(self.number).get(attribute, default), dtype=np.float64)

    def is_set(self, attribute: str) -> bool:
        return bool(self.graph.attributes_of(self.number).get(attribute, False))


def _layer_costs(graph: Graph, sizes: _Sizes) -> dict[int, Cost]:
    formulas = [_FORMULAS.get(name) for name in graph.names]
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    costs = {}
    for op, name in enumerate(graph.op_name.tolist()):
        formula = formulas[name]
        if formula is not None:
            costs[op] = formula(_Op(graph, op, inputs[op], outputs[op], sizes))
    return costs


def _inner_product(op: _Op) -> Cost:
    """Reads both factors and writes the product. A fully connected layer is one of them, its backward pass two."""
    left, right = op.inputs[-2:]  # a bias, which Paleo leaves out, comes first
    n_columns = op.sizes.dims(right)[:, 1:].prod(axis=1)  # a vector has one
    return Cost(2.0 * op.sizes.elements(left) * n_columns, op.sizes.bytes(left, right, op.outputs[0]))


def _convolution(op: _Op) -> Cost:
    image, weight, (output, *_) = op.inputs[0], op.inputs[1], op.outputs
    if op.is_set("transposed"):  # the input gradient of the convolution that leads from its output to its input
        return _spread(op, large=output, weight=weight, small=image)
    return _gather(op, large=image, weight=weight, small=output)


def _convolution_backward(op: _Op) -> Cost:
    """Gradients of input and filters, each where it is asked for: the first layer needs none of its input."""
    gradient, image, weight = op.inputs[:3]
    is_transposed = op.is_set("transposed")
    large, small = (gradient, image) if is_transposed else (image, gradient)
    wants_input, wants_filter, *_ = op.graph.attributes_of(op.number)["output_mask"]
    nothing = np.zeros(len(op.sizes.batch_sizes))
    cost = Cost(nothing, nothing)
    if wants_input:
        cost = cost.plus((_gather if is_transposed else _spread)(op, large=large, weight=weight, small=small))
    if wants_filter:
        cost = cost.plus(_gather(op, large=large, weight=weight, small=small))
    return cost


def _gather(op: _Op, *, large: int, weight: int, small: int) -> Cost:
    """A convolution as a matrix product: every weight meets every position of the small map.

    Forward reads the padded image and the filters and writes the small map. The filter gradient convolves the padded
    image with the gradient of the small map, so it reads those two and writes the filters: the same sums.
    """
    sizes = op.sizes
    image, positions = sizes.dims(large), sizes.dims(small)[:, 2:].prod(axis=1)
    padded = image[:, :2].prod(axis=1) * (image[:, 2:] + 2 * op.numbers("padding", 0)).prod(axis=1)
    flop = 2.0 * sizes.elements(weight) * positions * image[:, 0]
    return Cost(flop, padded * sizes.item_bytes[large] + sizes.bytes(weight, small))


def _spread(op: _Op, *, large: int, weight: int, small: int) -> Cost:
    """The input gradient: a convolution of the gradient, with stride 1, that has the image as its output.

    The gradient is first padded until that comes out, and a strided one is spread with zeros in between: the tool
    multiplies with the zeros, and adds 2 flop for every element that it moves there.
    """
    sizes = op.sizes
    image, kernel, gradient = sizes.dims(large)[:, 2:], sizes.dims(weight)[:, 2:], sizes.dims(small)
    span = op.numbers("dilation", 1) * (kernel - 1)
    padded = gradient[:, :2].prod(axis=1) * (image + span).prod(axis=1)
    has_holes = (image + 2 * op.numbers("padding", 0) - span != gradient[:, 2:]).any(axis=1)
    flop = 2.0 * sizes.elements(weight) * image.prod(axis=1) * gradient[:, 0]
    flop = flop + np.where(has_holes, 2.0 * sizes.elements(small), 0.0)
    return Cost(flop, padded * sizes.item_bytes[small] + sizes.bytes(weight, large))


def _pooling(op: _Op) -> Cost:
    return _pool(op, large=op.inputs[0], small=op.outputs[0])


def _pooling_backward(op: _Op) -> Cost:
    """The tool counts the same work in both directions."""
    return _pool(op, large=op.outputs[0], small=op.inputs[0])


def _pool(op: _Op, *, large: int, small: int) -> Cost:
    """2 flop for every element of the window at every output; reads the large map and writes the small one."""
    n_spatial = op.sizes.dims(large).shape[1] - 2
    kernel = op.numbers("kernel_size", 1)
    window = kernel.prod() if kernel.size > 1 else kernel.item() ** n_spatial
    return Cost(2.0 * window * op.sizes.elements(small), op.sizes.bytes(large, small))


def _adaptive_pooling(op: _Op) -> Cost:
    """Windows that tile the input: every element of it is in one of them."""
    return _pool_over_all(op.sizes, large=op.inputs[0], small=op.outputs[0])


def _adaptive_pooling_backward(op: _Op) -> Cost:
    return _pool_over_all(op.sizes, large=op.outputs[0], small=op.inputs[0])


def _pool_over_all(sizes: _Sizes, *, large: int, small: int) -> Cost:
    return Cost(2.0 * sizes.elements(large), sizes.bytes(large, small))


def _dropout(op: _Op) -> Cost:
    """1 flop an element, read and written. The mask is left out."""
    return Cost(op.sizes.elements(op.inputs[0]), op.sizes.bytes(op.inputs[0], op.outputs[0]))


def _spatial_mean_costs(graph: Graph, sizes: _Sizes) -> dict[int, Cost]:
    """PyTorch dispatches pooling over a whole map as a mean, and its gradient as a division."""
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    costs = {}
    for op in range(graph.n_ops):
        forward = int(graph.op_forward[op])
        if _is_spatial_mean(graph, op):
            costs[op] = _pool_over_all(sizes, large=inputs[op][0], small=outputs[op][0])
        elif graph.name_of(op) == "aten.div" and forward >= 0 and _is_spatial_mean(graph, forward):
            costs[op] = _pool_over_all(sizes, large=outputs[op][0], small=outputs[forward][0])
    return costs


def _is_spatial_mean(graph: Graph, op: int) -> bool:
    if graph.name_of(op) != "aten.mean":
        return False
    image = graph.op_inputs.values[graph.op_inputs.start[op]]
    n_dims = int(graph.dim_start[image + 1] - graph.dim_start[image])
    reduced = graph.attributes_of(op).get("dim") or []
    return n_dims == 4 and sorted(dim % n_dims for dim in reduced) == [2, 3]


def _update_costs(graph: Graph, sizes: _Sizes) -> dict[int, Cost]:
    """Plain SGD, all that the tool knows: 2 flop a weight; reads weight and gradient, writes the weight.

    The op that writes a weight last has its cost. What else an optimizer does is left out, as in the tool.
    """
    last: dict[int, tuple[int, int]] = {}  # storage -> op, weight
    outputs = graph.op_outputs.rows()
    for op in np.flatnonzero(graph.op_phase == Phase.OPTIMIZER).tolist():
        for tensor in outputs[op]:
            storage = int(graph.tensor_storage[tensor])
            if graph.storage_kind[storage] == StorageKind.WEIGHT:
                last[storage] = (op, tensor)
    weights: dict[int, list[int]] = {}
    for op, tensor in last.values():
        weights.setdefault(op, []).append(tensor)
    return {
        op: Cost(2.0 * sizes.n_elements[:, tensors].sum(axis=1), 3.0 * sizes.bytes(*tensors))
        for op, tensors in weights.items()
    }


_FORMULAS: dict[str, Callable[[_Op], Cost]] = {
    "aten.mm": _inner_product,
    "aten.addmm": _inner_product,
    "aten._addmm_activation": _inner_product,
    "aten._int_mm": _inner_product,
    "aten.mv": _inner_product,
    "aten.addmv": _inner_product,
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "aten.max_pool2d_with_indices": _pooling,
    "aten.max_pool2d_with_indices_backward": _pooling_backward,
    "aten.max_pool3d_with_indices": _pooling,
    "aten.max_pool3d_with_indices_backward": _pooling_backward,
    "aten.avg_pool1d": _pooling,
    "aten.avg_pool2d": _pooling,
    "aten.avg_pool2d_backward": _pooling_backward,
    "aten.avg_pool3d": _pooling,
    "aten.avg_pool3d_backward": _pooling_backward,
    "aten._adaptive_avg_pool2d": _adaptive_pooling,
    "aten._adaptive_avg_pool2d_backward": _adaptive_pooling_backward,
    "aten._adaptive_avg_pool3d": _adaptive_pooling,
    "aten._adaptive_avg_pool3d_backward": _adaptive_pooling_backward,
    "aten.adaptive_max_pool2d": _adaptive_pooling,
    "aten.adaptive_max_pool2d_backward": _adaptive_pooling_backward,
    "aten.native_dropout": _dropout,
    "aten.native_dropout_backward": _dropout,
}
