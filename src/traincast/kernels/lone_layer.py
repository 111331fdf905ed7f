"""A layer timed alone: what such a benchmark runs beside the layer, and how long one call of it takes.

Justus et al. 2018, and those who followed them, time a layer in a TensorFlow graph of its own: input and target are
variables, the loss is mean((layer(input) - target)^2), and an optimizer trains all variables. Inside a model the layer
has no call, no loss and no target of its own, and nobody updates its input.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.hardware.host import Host
from traincast.kernels.fused_updates import add_fused_update, add_step_count, check_fused_optimizer, no_model
from traincast.kernels.library_traits import CHANGE_FILTER, CHANGE_LAYOUT, PAD
from traincast.kernels.method import Method
from traincast.kernels.timeline import step_timeline
from traincast.trace.dtypes import FLOAT32
from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind
from traincast.trace.lowering.program import SCALAR, Program

_ACTIVATIONS = ("none", "relu", "tanh", "sigmoid", "softmax")
_FORWARD_NAME = {"softmax": "aten._softmax"}
_BACKWARD_NAME = {"relu": "aten.threshold_backward", "softmax": "aten._softmax_backward_data"}


class Part(IntEnum):
    """Why the benchmark runs an op. The first two are in a model as well."""

    LAYER = 0  # forward, gradients and updates of weight and bias
    INPUT_GRADIENT = 1  # in a model all layers but the first have it
    LOSS = 2  # over the layer's whole output; a model has one loss, over its last and smallest output
    DATA = 3  # the target's gradient, and updates of input and target
    LAYOUT = 4  # variables lie channels last, convolutions want them first, and padded; a model turns its input once


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A convolution of square images with square kernels. On images of one pixel it is a fully connected layer."""

    channels_in: int
    channels_out: int
    input_size: int = 1
    kernel: int = 1
    stride: int = 1
    is_padded: bool = False  # TensorFlow's SAME
    has_bias: bool = True
    activation: str = "relu"

    def __post_init__(self) -> None:
        if self.activation not in _ACTIVATIONS:
            raise InputError(f"Unknown activation {self.activation!r}; known are {', '.join(_ACTIVATIONS)}.")
        if self.output_size < 1:
            raise InputError(f"A kernel of {self.kernel} does not fit into images of {self.input_size}.")

    @property
    def output_size(self) -> int:
        if self.is_padded:
            return -(-self.input_size // self.stride)
        return (self.input_size - self.kernel) // self.stride + 1

    @property
    def is_product(self) -> bool:
        """A fully connected layer is one matrix product. Convolutions never are, not even with windows of one pixel.

        TensorFlow has products for those, but only channels last, and its layout optimizer turns them all
        (`no_gemm = true` in layout_optimizer.cc).
        """
        return self.input_size == 1

    @property
    def is_padded_apart(self) -> bool:
        """SAME with an odd number of rows to add: cuDNN pads both sides alike, so TensorFlow copies the image first."""
        missing = (self.output_size - 1) * self.stride + self.kernel - self.input_size
        return self.is_padded and missing > 0 and missing % 2 == 1


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LoneLayerTime:
    """Seconds of one call by cause; arrays have one entry a batch size.

    `device_s` has a column for each Part. What is left is `waiting_s`: ops that the host has still to dispatch.
    """

    seconds: Floats
    call_s: float
    device_s: Floats

    @property
    def waiting_s(self) -> Floats:
        return self.seconds - self.call_s - self.device_s.sum(axis=1)


def lone_layer_time(
    layer: Layer, batch_sizes: Ints, *, optimizer: str | None, device: Device, host: Host, method: Method
) -> LoneLayerTime:
    """One call of the benchmark in fp32; without an optimizer it is the forward pass alone.

    `LibraryMethod` is our default method with the libraries of TensorFlow at the time of such benchmarks.
    """
    graph = lone_layer_graph(layer, optimizer)
    times = method.op_times(graph, device, batch_sizes, precision="fp32")
    parts = [times.seconds[:, graph.op_module == part].sum(axis=1) for part in Part]
    seconds = step_timeline(graph, times, host).step_s
    return LoneLayerTime(seconds=seconds, call_s=host.call_s, device_s=np.stack(parts, axis=1))


def lone_layer_graph(layer: Layer, optimizer: str | None, *, without: Collection[Part] = ()) -> Graph:
    """What one call runs; `op_module` holds the Part of each op. Ops of the parts in `without` are left out."""
    writer = _Writer(layer, without)
    writer.forward()
    if optimizer is not None:
        check_fused_optimizer(optimizer)
        writer.loss()
        writer.backward()
        writer.update(optimizer)
    return writer.program.finish()


class _Writer:
    """Appends the ops of one call. A product's rows are the positions of all images."""

    def __init__(self, layer: Layer, without: Collection[Part]) -> None:
        self.layer, self.without = layer, without
        self.program = Program(no_model())
        size, out, c_in, c_out = layer.input_size, layer.output_size, layer.channels_in, layer.channels_out
        if layer.is_product:
            depth = layer.kernel**2 * c_in
            self.input = self._variable([(0, out**2), (depth, 0)])
            self.weight = self._variable([(depth, 0), (c_out, 0)])
            output = [(0, out**2), (c_out, 0)]
        else:
            self.input = self._variable([(0, 1), (c_in, 0), (size, 0), (size, 0)])
            self.weight = self._variable([(c_out, 0), (c_in, 0), (layer.kernel, 0), (layer.kernel, 0)])
            output = [(0, 1), (c_out, 0), (out, 0), (out, 0)]
        self.bias = self._variable([(c_out, 0)])
        self.target = self._variable(output)
        self.gradients: list[tuple[int, int, Part]] = []  # variable, gradient, why it is updated

    def forward(self) -> None:
        result, phase = self.program.like(self.target), Phase.FORWARD
        if self.layer.is_product:
            self._op("aten.mm", [self.input, self.weight], [result], phase)
        else:
            image = self._padded(self._changed_layout(self.input, phase), phase)
            weight = self._changed_filter(self.weight, phase)
            self._op("aten.convolution", [image, weight], [result], phase, Part.LAYER, **self._geometry())
            result = self._changed_layout(result, phase)
        if self.layer.has_bias:
            result = self._map("aten.add", [result, self.bias], phase)
        if self.layer.activation != "none":
            name = _FORWARD_NAME.get(self.layer.activation, f"aten.{self.layer.activation}")
            result = self._map(name, [result], phase)
        self.output = result

    def loss(self) -> None:
        self.difference = self._map("aten.sub", [self.output, self.target], Phase.LOSS, Part.LOSS)
        squared = self._map("aten.square", [self.difference], Phase.LOSS, Part.LOSS)
        mean = self.program.tensor(SCALAR, FLOAT32, self.program.storage())
        self._op("aten.mean", [squared], [mean], Phase.LOSS, Part.LOSS)

    def backward(self) -> None:
        gradient, phase = self._loss_gradient(), Phase.BACKWARD
        self.gradients.append((self.target, self._map("aten.neg", [gradient], phase, Part.DATA), Part.DATA))
        if self.layer.activation != "none":
            name = _BACKWARD_NAME.get(self.layer.activation, f"aten.{self.layer.activation}_backward")
            gradient = self._map(name, [gradient, self.output], phase)
        if self.layer.has_bias:
            of_bias = self.program.like(self.bias)
            self._op("aten.sum", [gradient], [of_bias], phase)
            self.gradients.append((self.bias, of_bias, Part.LAYER))
        of_weight, of_input = self.program.like(self.weight), self.program.like(self.input)
        if self.layer.is_product:
            self._op("aten.mm", [self._turned(self.input), gradient], [of_weight], phase)
            self._op("aten.mm", [gradient, self._turned(self.weight)], [of_input], phase, Part.INPUT_GRADIENT)
        else:
            gradient = self._changed_layout(gradient, phase)
            self._padded(self.input, phase)
            self._convolution_backward(gradient, of_weight, [False, True, False], Part.LAYER)
            of_weight = self._changed_filter(of_weight, phase)
            self._changed_filter(self.weight, phase)
            self._convolution_backward(gradient, of_input, [True, False, False], Part.INPUT_GRADIENT)
            of_input = self._changed_layout(self._padded(of_input, phase), phase)
        self.gradients += [(self.weight, of_weight, Part.LAYER), (self.input, of_input, Part.DATA)]

    def update(self, optimizer: str) -> None:
        for variable, gradient, part in self.gradients:
            if part not in self.without:
                add_fused_update(self.program, optimizer, variable, gradient, module=part)
        add_step_count(self.program, optimizer, module=Part.LAYER)

    def _loss_gradient(self) -> int:
        """1/n everywhere, times twice the difference: a full tensor and three passes."""
        spread = self.program.like(self.target)
        self._op("aten.full", [], [spread], Phase.BACKWARD, Part.LOSS)
        spread = self._map("aten.div", [spread], Phase.BACKWARD, Part.LOSS)
        doubled = self._map("aten.mul", [self.difference], Phase.BACKWARD, Part.LOSS)
        return self._map("aten.mul", [spread, doubled], Phase.BACKWARD, Part.LOSS)

    def _convolution_backward(self, gradient: int, found: int, mask: list[bool], part: Part) -> None:
        sources = [gradient, self.input, self.weight]
        geometry = {**self._geometry(), "output_mask": mask}
        self._op("aten.convolution_backward", sources, [found], Phase.BACKWARD, part, **geometry)

    def _geometry(self) -> dict[str, Any]:
        padding = (self.layer.kernel - 1) // 2 if self.layer.is_padded else 0
        sizes = {"stride": [self.layer.stride] * 2, "padding": [padding] * 2, "dilation": [1, 1]}
        return {**sizes, "transposed": False, "groups": 1}

    def _changed_layout(self, tensor: int, phase: Phase) -> int:
        return self._map(CHANGE_LAYOUT, [tensor], phase, Part.LAYOUT)

    def _changed_filter(self, tensor: int, phase: Phase) -> int:
        """Height, width, in, out to out, in, height, width, or back: in every convolution and both of its gradients."""
        return self._map(CHANGE_FILTER, [tensor], phase, Part.LAYOUT)

    def _padded(self, image: int, phase: Phase) -> int:
        return self._map(PAD, [image], phase, Part.LAYOUT) if self.layer.is_padded_apart else image

    def _variable(self, dims: list[tuple[int, int]]) -> int:
        program = self.program
        return program.tensor(program.shape(dims), FLOAT32, program.storage(StorageKind.WEIGHT))

    def _turned(self, matrix: int) -> int:
        """The same matrix read across: a flag of the product, not an op."""
        program = self.program
        rows, columns = program.dims_of(program.tensor_shape[matrix])
        return program.tensor(program.shape([columns, rows]), FLOAT32, program.tensor_storage[matrix])

    def _map(self, name: str, inputs: list[int], phase: Phase, part: Part = Part.LAYER) -> int:
        """An op whose result looks like its first input."""
        result = self.program.like(inputs[0])
        self._op(name, inputs, [result], phase, part)
        return result

    def _op(
        self, name: str, inputs: list[int], outputs: list[int], phase: Phase, part: Part = Part.LAYER, **more: Any
    ) -> None:
        if part not in self.without:
            self.program.emit(name, inputs, outputs, phase=phase, module=part, **more)
