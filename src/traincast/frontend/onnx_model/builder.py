"""From an ONNX graph to a torch module: what becomes a layer, a parameter, a constant or a step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torch import nn

from traincast.errors import CaptureError, FileFormatError
from traincast.frontend.onnx_model.host import HostOp, is_deterministic
from traincast.frontend.onnx_model.layers import LAYERS, Parameters, linear
from traincast.frontend.onnx_model.module import OnnxModule, Step, TensorSlot
from traincast.frontend.onnx_model.ops_math import MATH
from traincast.frontend.onnx_model.ops_nn import NETWORK
from traincast.frontend.onnx_model.ops_shape import SHAPE
from traincast.frontend.onnx_model.recurrent import CLASSES as RECURRENT
from traincast.frontend.onnx_model.recurrent import recurrent
from traincast.frontend.onnx_model.values import number, to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Graph, Node
    from traincast.frontend.onnx_model.weights import TrainedWeights

FUNCTIONS: dict[str, Callable[..., Any]] = {**MATH, **SHAPE, **NETWORK}
# Inputs that say how, not what: they stay numbers on the host.
SETTINGS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Expand": (1,),
    "Tile": (1,),
    "Slice": (1, 2, 3, 4),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "Split": (1,),
    "Pad": (1, 2, 3),
    "Clip": (1, 2),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "CumSum": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "OneHot": (1, 2),
    **{op: (5, 6) for op in RECURRENT},
    **{op: (1,) for op in FUNCTIONS if op.startswith("Reduce")},
}
# What a layer is called with: the inputs of its node that are not weights.
LAYER_INPUTS = {"Gather": (1,), "LSTM": (0, 4, 5, 6), "GRU": (0, 4, 5), "RNN": (0, 4, 5)}
ONE_OUTPUT = {"MaxPool", "Dropout", "BatchNormalization", "LayerNormalization", "Attention"}


def build_module(graph: Graph, weights: TrainedWeights, *, exported_batch: int | None) -> OnnxModule:
    """The module; parameters are on meta unless `weights` has their values."""
    module = OnnxModule(graph, exported_batch=exported_batch)
    _Builder(module, graph, weights).build()
    return module


class _Builder:
    def __init__(self, module: OnnxModule, graph: Graph, weights: TrainedWeights) -> None:
        self.module, self.graph, self.weights = module, graph, weights
        self.parameters = Parameters(weights)
        self.on_host: set[str] = set()
        self.done: set[str] = set()

    def build(self) -> None:
        steps = [step for node in self.graph.nodes for step in self._steps_of(node)]
        kept = {*self.graph.outputs, *self.module._constants, *self.module._places}
        self.module._steps = tuple(_with_drops(steps, kept))
        for name in self.graph.outputs:
            if self.weights.is_constant(name):
                raise CaptureError(f"{self.graph.path}: the output '{name}' does not depend on any input.")

    def _steps_of(self, node: Node) -> list[Step]:
        if node.name in self.done or all(self.weights.is_constant(name) for name in node.outputs if name):
            return []
        if self._is_host(node):
            self.on_host.update(node.outputs)
            inputs = tuple(self._host_value(name) for name in node.inputs)
            return [_step(node, HostOp(node), inputs)]
        if node.op in ("Shape", "Size"):
            self.on_host.update(node.outputs)
        self._refuse_extra_outputs(node)
        try:
            layer, outputs = self._layer(node)
        except (TypeError, ValueError, IndexError, RuntimeError) as error:  # dimensions, types and attributes of a file
            raise FileFormatError(
                f"The ONNX node '{node.name}' ({node.op}) has weights or attributes that do not fit it: {error}."
            ) from error
        if layer is not None:
            self._attach(layer, self._layer_path(node))
            wanted = LAYER_INPUTS.get(node.op, (0,))
            inputs = tuple(self._value(node, index) for index in wanted if index < len(node.inputs))
            return [_step(node, layer, inputs, outputs=outputs)]
        if node.op not in FUNCTIONS:
            raise self._unsupported(node)
        inputs = tuple(self._value(node, index) for index in range(len(node.inputs)))
        return [_step(node, FUNCTIONS[node.op], inputs, takes_node=True)]

    def _is_host(self, node: Node) -> bool:
        """Arithmetic on shapes: everything that goes in is known on the host."""
        named = [name for name in node.inputs if name]
        trained = any(self.weights.of(node, index) for index in range(len(node.inputs)))
        known = all(name in self.on_host or self.weights.is_constant(name) for name in named)
        return known and bool(named) and not trained and is_deterministic(node.op)

    def _layer(self, node: Node) -> tuple[Any, tuple[str, ...]]:
        if node.op == "Dropout":
            return nn.Dropout(self._dropout_fraction(node)), node.outputs
        if node.op in RECURRENT:
            return recurrent(node, self.parameters), node.outputs
        if node.op == "MatMul" and (add := self._bias_after(node)) is not None:
            weight = self.weights.of(node, 1)
            assert weight is not None
            bias = next(source for index in (0, 1) if (source := self.weights.of(add, index)))
            self.done.add(add.name)
            return linear(self.parameters, weight, bias, swap=True), add.outputs
        if node.op in LAYERS:
            return LAYERS[node.op](node, self.parameters), node.outputs
        return None, node.outputs

    def _bias_after(self, node: Node) -> Node | None:
        """The Add that makes a product with a stored matrix a linear layer with a bias."""
        users = self.graph.users.get(node.outputs[0], [])
        shape = self.parameters.shape(node, 1)
        if len(shape) != 2 or len(users) != 1 or node.outputs[0] in self.graph.outputs:
            return None
        add, index = users[0]
        fits = add.op == "Add" and self.parameters.shape(add, 1 - index) == (shape[1],)
        return add if fits else None

    def _dropout_fraction(self, node: Node) -> float:
        if len(node.inputs) > 1 and node.inputs[1]:
            return float(number(self.weights.constant(node.inputs[1]), "The ratio of a Dropout"))
        return float(node.get("ratio", 0.5))

    def _host_value(self, name: str) -> str:
        if name and name not in self.on_host:
            self.module._constants[name] = self.weights.constant(name)
        return name

    def _value(self, node: Node, index: int) -> str:
        """The name under which the step finds this input; constants and weights get a place on the module."""
        name = node.inputs[index]
        if not name or not self.weights.is_constant(name):
            return name
        if (source := self.weights.of(node, index)) is not None:
            return self._parameter_place(name, source)
        values = self.weights.constant(name)
        from_the_end = node.op == "Gather" and index == 1 and bool((values < 0).any())
        if index in SETTINGS.get(node.op, ()) or values.size <= 1 or from_the_end:
            self.module._constants[name] = values
            return name
        return self._buffer_place(name, values)

    def _parameter_place(self, name: str, source: Any) -> str:
        key = f"weight {name}"
        if key not in self.module._places:
            parameter, swapped = self.parameters.take(source)
            path = re.sub(r"[^\w.]", "_", source.name).strip(".")
            owner, attribute = self._owner(path)
            self.module.get_submodule(owner).register_parameter(attribute, parameter)
            self.module._places[key] = TensorSlot(owner=owner, attribute=attribute, swapped=swapped)
        return key

    def _buffer_place(self, name: str, values: Any) -> str:
        key = f"constant {name}"
        if key not in self.module._places:
            attribute = f"constant_{sum(1 for place in self.module._places.values() if place.owner == '')}"
            attribute = _free(self.module, attribute)
            self.module.register_buffer(attribute, to_tensor(values), persistent=False)
            self.module._places[key] = TensorSlot(owner="", attribute=attribute)
        return key

    def _layer_path(self, node: Node) -> str:
        """Named as the exporter named the weight, else the module or the node that it came from."""
        for index in range(len(node.inputs)):
            source = self.weights.of(node, index)
            if source is not None and source.name.endswith(".weight"):
                return source.name.removesuffix(".weight")
        leaf = re.sub(r"\W", "_", node.op.lower())
        deeper = re.compile(rf"{re.escape(node.scope)}\.[^.]+\..")
        inside = any(deeper.match(name) for name in self.graph.initializers)
        return f"{node.scope}.{leaf}" if inside else node.scope

    def _attach(self, layer: Any, path: str) -> None:
        owner, attribute = self._owner(re.sub(r"[^\w.]", "_", path).strip(".") or "layer")
        self.module.get_submodule(owner).add_module(attribute, layer)

    def _owner(self, path: str) -> tuple[str, str]:
        """The module on which the last part of a dotted path is free to hang, made on the way down."""
        owner: Any = self.module
        trail: list[str] = []
        *above, last = [part for part in path.split(".") if part]
        for part in above:
            if part not in owner._modules:
                part = _free(owner, part)
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
            trail.append(part)
        return ".".join(trail), _free(owner, last)

    def _refuse_extra_outputs(self, node: Node) -> None:
        used = [name for name in node.outputs[1:] if name in self.graph.users or name in self.graph.outputs]
        if node.op in ONE_OUTPUT and used:
            raise CaptureError(
                f"{self.graph.path}: the second output of the ONNX node '{node.name}' ({node.op}) is used, "
                "and only the first is supported. Capture the PyTorch module itself, from a file.py:factory."
            )

    def _unsupported(self, node: Node) -> CaptureError:
        known = {*FUNCTIONS, *LAYERS, *RECURRENT, "Dropout", node.op}
        others = sorted({other.op for other in self.graph.nodes} - known)
        more = f" (nor perhaps {', '.join(others)})" if others else ""
        return CaptureError(
            f"{self.graph.path}: the ONNX op '{node.op}' (node '{node.name}') is not supported{more}. "
            "Export the model without it, or capture the PyTorch module itself, from a file.py:factory."
        )


def _step(
    node: Node,
    run: Any,
    inputs: tuple[str, ...],
    *,
    outputs: tuple[str, ...] | None = None,
    takes_node: bool = False,
) -> Step:
    outputs = node.outputs if outputs is None else outputs
    return Step(node=node, run=run, inputs=inputs, outputs=outputs, drops=(), takes_node=takes_node)


def _with_drops(steps: list[Step], kept: set[str]) -> list[Step]:
    """Each value is dropped after the step that uses it last, or makes it if nobody does."""
    last: dict[str, int] = {}
    for number_, step in enumerate(steps):
        last.update(dict.fromkeys((*step.outputs, *step.inputs), number_))
    drops: dict[int, list[str]] = {}
    for name, number_ in last.items():
        if name and name not in kept:
            drops.setdefault(number_, []).append(name)
    return [
        Step(
            node=step.node,
            run=step.run,
            inputs=step.inputs,
            outputs=step.outputs,
            drops=tuple(drops.get(number_, ())),
            takes_node=step.takes_node,
        )
        for number_, step in enumerate(steps)
    ]


def _free(owner: Any, name: str) -> str:
    """The name, with a number if the module already has something of that name."""
    free, count = name, 1
    while hasattr(owner, free):
        count += 1
        free = f"{name}_{count}"
    return free
