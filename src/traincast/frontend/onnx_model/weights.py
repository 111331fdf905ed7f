"""Which constants of an ONNX graph are trained weights: an ONNX file does not say.

Floating constants are taken for weights where networks keep theirs: the kernels of convolutions and products,
the scales and shifts of normalisations, tables that are looked up, and what is added to or multiplied with
activations (biases, learned positions, layer scales). Single numbers, masks and what the exporter marks as a
buffer are constants. A fixed sine table that is added to the embeddings cannot be told from a learned one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.errors import FileFormatError
from traincast.frontend.onnx_model.host import HostOp, is_deterministic

if TYPE_CHECKING:
    from traincast.frontend.onnx_model.graph import Graph, Node

MASKED = -1e4  # what attention masks add, or less, where nothing may be seen
POSITIONS: dict[str, tuple[int, ...]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "Einsum": (0, 1),
    "BatchNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "RMSNormalization": (1,),
    "InstanceNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "PRelu": (1,),
    "Gather": (0,),
    "LSTM": (1, 2, 3),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
    "Add": (0, 1),
    "Mul": (0, 1),
    "Expand": (0,),
    "Concat": tuple(range(16)),
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand's values are kept: an initializer, as it is or with its two axes swapped."""

    name: str
    swapped: bool = False


class TrainedWeights:
    """Finds the source of every trained operand; arithmetic on weights alone is folded into a new weight."""

    def __init__(self, graph: Graph, *, with_values: bool) -> None:
        self.graph = graph
        self.with_values = with_values
        self.folded: dict[str, Any] = {}
        self._constant: dict[str, bool] = {}
        self._values: dict[str, Any] = {}
        self.sources: dict[tuple[str, int], Source] = {}
        self._op_of = {node.name: node.op for node in graph.nodes}
        for node in graph.nodes:
            for index in POSITIONS.get(node.op, ()):
                if index < len(node.inputs) and (source := self._source(node, index)):
                    self.sources[node.name, index] = source
            for name in node.outputs:  # in the order of the graph, so that the question never goes deep
                self.is_constant(name)
        self._tie_again()

    def _tie_again(self) -> None:
        """Exporters store a transposed copy of an embedding that is the last product's weight as well."""
        tables = [source for (name, _), source in self.sources.items() if self._op_of[name] == "Gather"]
        for key, source in self.sources.items():
            if self._op_of[key[0]] not in ("MatMul", "Gemm") or source.swapped:
                continue
            for table in tables:
                if self.shape(table) == self.shape(source)[::-1] and self._are_transposed(table, source):
                    self.sources[key] = Source(table.name, swapped=True)

    def _are_transposed(self, table: Source, source: Source) -> bool:
        try:
            return np.array_equal(self.graph.array(table.name), self.graph.array(source.name).T)
        except (KeyError, FileFormatError):  # folded, or without the file that holds the values
            return False

    def of(self, node: Node, index: int) -> Source | None:
        return self.sources.get((node.name, index))

    def shape(self, source: Source) -> tuple[int, ...]:
        shape = self._shape_of(source.name)
        return shape[::-1] if source.swapped else shape

    def dtype(self, name: str) -> Any:
        return self.folded[name].dtype if name in self.folded else self.graph.numpy_dtype(name)

    def values(self, source: Source) -> Any:
        array = self.folded[source.name] if source.name in self.folded else self.graph.array(source.name)
        return array.T if source.swapped else array

    def is_constant(self, name: str) -> bool:
        """Known before the step runs: an initializer, a Constant, or arithmetic on them."""
        if name not in self._constant:
            node = self.graph.producers.get(name)
            if node is None:
                self._constant[name] = name in self.graph.initializers
            else:
                inputs = [given for given in node.inputs if given]
                self._constant[name] = is_deterministic(node.op) and all(map(self.is_constant, inputs))
        return self._constant[name]

    def _shape_of(self, name: str) -> tuple[int, ...]:
        return self.folded[name].shape if name in self.folded else self.graph.shape(name)

    def _source(self, node: Node, index: int) -> Source | None:
        name = node.inputs[index]
        if not name or not self.is_constant(name) or all(map(self.is_constant, filter(None, node.inputs))):
            return None
        source = self._follow(name) or self._fold(name)
        if source is None or self.graph.kinds.get(source.name) == "BUFFER":
            return None
        return source if self._looks_trained(node, index, source) else None

    def _follow(self, name: str) -> Source | None:
        """Through copies and swaps of two axes, back to an initializer."""
        swapped = False
        while name not in self.graph.initializers:
            node = self.graph.producers[name]
            if node.op == "Transpose" and node.get("perm") == [1, 0]:
                swapped = not swapped
            elif node.op != "Identity":
                return None
            name = node.inputs[0]
        return Source(name, swapped) if self.graph.is_float(name) else None

    def _fold(self, name: str) -> Source | None:
        """Arithmetic on constants, done now; without values, on arrays that have a shape but no memory."""
        if name not in self.folded:
            if not any(self.graph.is_float(leaf) for leaf in self._leaves(name)):
                return None
            array = np.asarray(self._evaluate(name, real=self.with_values))
            if not np.issubdtype(array.dtype, np.floating):
                return None
            self.folded[name] = array
        return Source(name)

    def _leaves(self, name: str) -> list[str]:
        if name in self.graph.initializers:
            return [name]
        node = self.graph.producers[name]
        return [leaf for given in node.inputs if given for leaf in self._leaves(given)]

    def constant(self, name: str) -> Any:
        """The values of something that is known before the step runs."""
        if name not in self._values:
            self._values[name] = np.asarray(self._evaluate(name, real=True))
        return self._values[name]

    def _evaluate(self, name: str, *, real: bool) -> Any:
        if name in self.graph.initializers:
            if real or not self.graph.is_float(name) or math.prod(self.graph.shape(name)) <= 1:
                return self.graph.array(name)
            return np.broadcast_to(np.zeros((), self.graph.numpy_dtype(name)), self.graph.shape(name))
        node = self.graph.producers[name]
        given = [self._evaluate(name, real=real) if name else None for name in node.inputs]
        outputs = HostOp(node)(*given)
        return outputs[node.outputs.index(name)]

    def _looks_trained(self, node: Node, index: int, source: Source) -> bool:
        shape = self.shape(source)
        if node.op in ("Add", "Mul", "Expand", "Concat", "MatMul", "Einsum") and math.prod(shape) <= 1:
            return False
        marked = self.graph.kinds.get(source.name) == "PARAMETER"
        if node.op == "Mul":
            return marked or sum(size > 1 for size in shape) == 1
        if node.op == "MatMul" and len(shape) > 2:
            return marked or all(size > 1 for size in shape)
        return marked or self._has_trained_values(node, index, source)

    def _has_trained_values(self, node: Node, index: int, source: Source) -> bool:
        """Where its place leaves it open, a constant's values tell; without their file, it is a weight."""
        telling = node.op in ("Expand", "Concat", "InstanceNormalization")
        if not telling and not (node.op == "Add" and len(self.shape(source)) > 1):
            return True
        try:
            values = self.constant(source.name)
        except FileFormatError:
            return True
        if node.op == "Add":
            return bool(values.min() > MASKED)
        if node.op == "InstanceNormalization":  # a group norm is exported as one of ones and zeros
            return bool((values != float(index == 1)).any())
        return bool(values.any())  # a learned token; zeros are the empty state of a recurrent layer
