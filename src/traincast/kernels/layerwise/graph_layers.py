"""Finding layers in a lowered graph: the convolutions and matrix products that the layer data can speak about.

A layer is a forward op; the backward ops that belong to it share the rest of its time. What the data never held
is no layer: grouped, dilated and transposed convolutions, those of one or three dimensions, and batched products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, OPTIMIZERS, ConvLayers, DenseLayers
from traincast.trace.graph import Floats, Graph, Ints, Phase
from traincast.trace.lowering.optimizers import RECIPES
from traincast.trace.once import once_per_graph

_PRODUCTS = ("aten.mm", "aten.addmm")
_BACKWARD = (*_PRODUCTS, "aten.convolution_backward")
# The data's optimizer that does the same work as ours: a weight decay or a look ahead costs next to nothing.
_OPTIMIZER = {
    "sgd": "SGD", "momentum": "Momentum", "nesterov": "Momentum", "adagrad": "Adagrad", "rmsprop": "RMSProp",
    "adam": "Adam", "adamw": "Adam", "adadelta": "Adadelta",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphLayers:
    """The layers of one kind: their forward ops, tensors and attributes, and the backward ops of each."""

    kind: str
    ops: Ints
    left: Ints  # the image, or the left matrix
    right: Ints  # the weight, or the right matrix
    output: Ints
    stride: Floats
    is_padded: Floats
    has_bias: Floats
    activation: Ints
    backward_ops: Ints
    backward_layer: Ints  # position in `ops` of the layer that a backward op belongs to
    backward_share: Floats  # of the layer's backward time

    def table(self, graph: Graph, batch_sizes: Ints) -> ConvLayers | DenseLayers:
        """The layers at all batch sizes, forward only: batch sizes outside, layers inside."""
        dims = graph.dims(batch_sizes).astype(float)
        if self.kind == "dense":
            left, right = _dims_of(graph, dims, self.left, 2), _dims_of(graph, dims, self.right, 2)
            return DenseLayers(
                batch=left[:, 0], dim_in=left[:, 1], dim_out=right[:, 1], **self._choices(len(batch_sizes))
            )
        image, weight, output = (_dims_of(graph, dims, tensors, 4) for tensors in (self.left, self.right, self.output))
        settings = (self.stride, self.is_padded, self.has_bias)
        stride, is_padded, has_bias = (np.tile(values, len(batch_sizes)) for values in settings)
        return ConvLayers(
            batch=image[:, 0],
            # Squares of the same area stand for rectangles: the work is the same.
            input_size=np.sqrt(image[:, 2] * image[:, 3]),
            output_size=np.sqrt(output[:, 2] * output[:, 3]),
            kernel=np.sqrt(weight[:, 2] * weight[:, 3]),
            channels_in=weight[:, 1],
            channels_out=weight[:, 0],
            stride=stride,
            is_padded=is_padded,
            has_bias=has_bias,
            **self._choices(len(batch_sizes)),
        )

    def _choices(self, n_batch_sizes: int) -> dict[str, Ints]:
        activation = np.tile(self.activation, n_batch_sizes)
        return {"activation": activation, "optimizer": np.zeros_like(activation)}


def _dims_of(graph: Graph, dims: Floats, tensors: Ints, n_dims: int) -> Floats:
    """Dimensions of some tensors, one row a batch size and tensor."""
    return dims[:, graph.dim_start[tensors][:, None] + np.arange(n_dims)].reshape(-1, n_dims)


@once_per_graph
def find_layers(graph: Graph) -> tuple[GraphLayers, GraphLayers]:
    """Convolutions and fully connected layers."""
    inputs = graph.op_inputs.rows()
    conv, dense = [], []
    for op in _ops_named(graph, ("aten.convolution", *_PRODUCTS)):
        if graph.op_phase[op] != Phase.BACKWARD or graph.op_recomputed[op]:
            is_product = graph.name_of(op) in _PRODUCTS
            if is_product:
                dense.append(op)
            elif _is_plain_convolution(graph, op, inputs[op]):
                conv.append(op)
    return _layers(graph, "conv", conv, inputs), _layers(graph, "dense", dense, inputs)


def _ops_named(graph: Graph, names: tuple[str, ...]) -> list[int]:
    return np.flatnonzero(np.array([name in names for name in graph.names], dtype=bool)[graph.op_name]).tolist()


def _is_plain_convolution(graph: Graph, op: int, inputs: list[int]) -> bool:
    attributes = graph.attributes_of(op)
    n_dims = graph.dim_start[inputs[1] + 1] - graph.dim_start[inputs[1]]
    is_simple = not attributes["transposed"] and attributes["groups"] == 1 and set(attributes["dilation"]) == {1}
    return bool(n_dims == 4 and is_simple)


def _layers(graph: Graph, kind: str, ops: list[int], inputs: list[list[int]]) -> GraphLayers:
    left, right = (0, 1) if kind == "conv" else (-2, -1)
    attributes = [graph.attributes_of(op) if kind == "conv" else {"stride": [1], "padding": [0]} for op in ops]
    outputs = graph.op_outputs.values[graph.op_outputs.start[ops]]
    position = {op: number for number, op in enumerate(ops)}
    backward = [
        (op, position[int(graph.op_forward[op])])
        for op in _ops_named(graph, _BACKWARD)
        if graph.op_phase[op] == Phase.BACKWARD and int(graph.op_forward[op]) in position and op not in position
    ]
    backward_ops, backward_layer = np.array(backward, dtype=np.int64).reshape(-1, 2).T
    return GraphLayers(
        kind=kind,
        ops=np.array(ops, dtype=np.int64),
        left=np.array([inputs[op][left] for op in ops], dtype=np.int64),
        right=np.array([inputs[op][right] for op in ops], dtype=np.int64),
        output=outputs,
        stride=np.array([np.mean(each["stride"]) for each in attributes]),
        is_padded=np.array([float(any(each["padding"])) for each in attributes]),
        has_bias=np.array([float(len(inputs[op]) > 2) for op in ops]),
        activation=_activations(graph, outputs, inputs),
        backward_ops=backward_ops,
        backward_layer=backward_layer,
        backward_share=1.0 / np.bincount(backward_layer, minlength=len(ops))[backward_layer],
    )


def _activations(graph: Graph, tensors: Ints, inputs: list[list[int]]) -> Ints:
    """What is applied to each tensor right away, where the data know it; otherwise nothing."""
    names = {f"aten.{name}{ending}": ACTIVATIONS.index(name) for name in ACTIVATIONS[1:] for ending in ("", "_")}
    applied = {
        inputs[op][0]: names[graph.name_of(op)]
        for op in _ops_named(graph, tuple(names))
        if graph.op_phase[op] == Phase.FORWARD and inputs[op]
    }
    return np.array([applied.get(tensor, 0) for tensor in tensors.tolist()], dtype=np.int64)


def graph_optimizer(graph: Graph) -> int | None:
    """The optimizer of a step as a position in OPTIMIZERS, told by its ops; None where nothing is updated."""
    in_phase = graph.op_name[graph.op_phase == Phase.OPTIMIZER]
    ops = {graph.names[name].removeprefix("aten.").removeprefix("_foreach_") for name in np.unique(in_phase)}
    fitting = {name: wanted for name in _OPTIMIZER for wanted in _recipe_ops(name) if wanted <= ops}
    if not fitting:
        return None
    return OPTIMIZERS.index(_OPTIMIZER[max(fitting, key=lambda name: len(fitting[name]))])


def _recipe_ops(optimizer: str) -> list[set[str]]:
    recipe = RECIPES[optimizer]
    return [{line.split()[1] for line in lines} for lines in (recipe.single, recipe.foreach)]
