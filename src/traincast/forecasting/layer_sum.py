"""Every layer of a model timed alone, added up, against the step of the whole model, and why the two differ.

The practicum (after Justus et al. 2018) benchmarks layers alone in TensorFlow and adds their times; the sum is not the
step, and no constant corrects it: docs/layer_sums.md takes the ratio apart on measured layers. Here the same
arithmetic is asked about any model: `kernels/lone_layer.py` for the layers, the whole step as Keras runs it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.forecasting.question import Question
from traincast.hardware.host import Host, find_host
from traincast.kernels.fused_updates import check_fused_optimizer, with_fused_updates
from traincast.kernels.library_method import LibraryMethod
from traincast.kernels.lone_layer import Layer, LoneLayerTime, Part, lone_layer_time
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import step_timeline
from traincast.trace.graph import Graph, Phase, StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

FEED_S_PER_BYTE = 0.85e-9  # gathering and copying the input of a step; fitted in docs/layer_sums.md
CALLS_S = (116e-6, 352e-6)  # of one session.run, over six machines (data/hosts.csv)
_PROJECT_CALL_S = 313e-6  # of the practicum's own P100 machine: docs/layer_sums.md
_PRODUCTS = ("aten.addmm", "aten.mm")
_ACTIVATIONS = {"aten.relu": "relu", "aten.relu_": "relu", "aten.tanh": "tanh", "aten.sigmoid": "sigmoid"}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LoneLayer:
    """A layer of the model, and what a benchmark of it alone would take."""

    path: str
    kind: str  # convolution or dense
    n_parameters: int
    time: LoneLayerTime

    @property
    def seconds(self) -> float:
        return float(self.time.seconds[0])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LayerSum:
    """The layers, the whole, and what stands in the one and not in the other."""

    model: str
    device: str
    batch_size: int
    optimizer: str
    layers: tuple[LoneLayer, ...]
    whole_s: float
    whole_parts_s: dict[str, float]  # of the whole model's step; they add up to it
    call_s: float  # of each lone layer
    left_out: dict[str, int]  # products that the benchmark has no layer for, by why

    @property
    def sum_s(self) -> float:
        return sum(layer.seconds for layer in self.layers)

    @property
    def ratio(self) -> float:
        return self.sum_s / self.whole_s

    @property
    def ratio_by_call(self) -> tuple[float, float]:
        """On the machines with the fastest and the slowest calls of those that were measured."""
        low, high = (self.sum_s + len(self.layers) * (call_s - self.call_s) for call_s in CALLS_S)
        return low / self.whole_s, high / self.whole_s

    @property
    def causes_s(self) -> dict[str, float]:
        """The sum by cause; they add up to it."""
        device_s = np.sum([layer.time.device_s[0] for layer in self.layers], axis=0)
        return {
            "a call per layer": sum(layer.time.call_s for layer in self.layers),
            "waiting for dispatch": sum(float(layer.time.waiting_s[0]) for layer in self.layers),
            "the layers themselves": float(device_s[Part.LAYER]),
            "gradients of their inputs": float(device_s[Part.INPUT_GRADIENT]),
            "a loss per layer": float(device_s[Part.LOSS]),
            "updates of input and target": float(device_s[Part.DATA]),
            "changes of layout": float(device_s[Part.LAYOUT]),
        }

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        names = ("model", "device", "batch_size", "optimizer", "sum_s", "whole_s", "ratio", "ratio_by_call")
        return {
            **{name: getattr(self, name) for name in names},
            "causes_s": self.causes_s,
            "whole_parts_s": self.whole_parts_s,
            "call_s": self.call_s,
            "left_out": self.left_out,
            "layers": [{"path": one.path, "kind": one.kind, "seconds": one.seconds} for one in self.layers],
        }


def layer_sum(question: Question) -> LayerSum:
    """Of one device in fp32, as those benchmarks ran."""
    _check(question)
    optimizer = None if question.is_inference else question.settings.optimizer
    session, keras = session_host(question), find_host("tf2-keras")
    layers, left_out = lone_layers_of(question, optimizer, session)
    whole_parts_s = _whole(question, optimizer, keras)
    return LayerSum(
        model=question.trace.name,
        device=question.device.name,
        batch_size=question.batch_size,
        optimizer=optimizer or "none (inference)",
        layers=layers,
        whole_s=sum(whole_parts_s.values()),
        whole_parts_s=whole_parts_s,
        call_s=session.call_s,
        left_out=left_out,
    )


def _check(question: Question) -> None:
    if question.n_devices > 1:
        raise InputError("Layers are timed alone on one GPU: name one, or several with the strategy mirrored.")
    check_benchmark(question)


def check_benchmark(question: Question) -> None:
    """What such benchmarks ran on, and how."""
    if question.device.kind != "gpu":
        raise InputError("Layers were timed alone on GPUs: name one, such as P100-PCIe-16GB.")
    if question.settings.precision != "fp32":
        raise InputError(
            f"The benchmarks of lone layers ran in fp32: leave the precision {question.settings.precision} out."
        )
    if not question.is_inference:
        check_fused_optimizer(question.settings.optimizer)


def session_host(question: Question) -> Host:
    """A call costs what it did on the practicum's machine, if it is that GPU; else as on most machines."""
    from dataclasses import replace

    session = find_host("tf1-session")
    return replace(session, call_s=_PROJECT_CALL_S) if question.device.name.startswith("P100") else session


def _whole(question: Question, optimizer: str | None, keras: Host) -> dict[str, float]:
    """The step as Keras runs it: one fused update per variable, one call, and the input copied to the device."""
    graph = lower(question.trace, target="cuda", settings=Settings("fp32", "none"))
    if optimizer is not None:
        graph = with_fused_updates(graph, optimizer)
    batch = np.array([question.batch_size])
    times = Traincast().op_times(graph, question.device, batch, precision="fp32")
    step_s = float(step_timeline(graph, times, keras).step_s[0])
    device_s = float(times.seconds.sum())
    fed = graph.storage_bytes(batch)[0][graph.storage_kind == StorageKind.INPUT].sum()
    return {
        "one call": keras.call_s,
        "the device's work": device_s,
        "waiting for dispatch": step_s - keras.call_s - device_s,
        "feeding the input": FEED_S_PER_BYTE * float(fed),
    }


def lone_layers_of(
    question: Question, optimizer: str | None, host: Host
) -> tuple[tuple[LoneLayer, ...], dict[str, int]]:
    """Each convolution and dense layer alone on the share of one device, and what there is no such benchmark for."""
    trace, graph = question.trace, question.trace.graph
    method, left_out = LibraryMethod(), Counter[str]()
    activations = _activations(graph)
    known: dict[tuple[Layer, int], LoneLayerTime] = {}
    found = []
    for op in np.flatnonzero(graph.op_phase == Phase.FORWARD).tolist():
        name = graph.name_of(op)
        if name != "aten.convolution" and name not in _PRODUCTS:
            continue
        read = _convolution if name == "aten.convolution" else _dense
        layer = read(graph, op, question.micro_batch_size, activations.get(op, "none"))
        if isinstance(layer, str):
            left_out[layer] += 1
            continue
        if layer not in known:
            shape, rows = layer
            known[layer] = lone_layer_time(
                shape, np.array([rows]), optimizer=optimizer, device=question.device, host=host, method=method
            )
        kind = "convolution" if name == "aten.convolution" else "dense"
        path, n_weights = trace.modules[graph.op_module[op]].path, _n_weights(layer[0])
        found.append(LoneLayer(path=path, kind=kind, n_parameters=n_weights, time=known[layer]))
    if not found:
        raise InputError(f"{trace.name} has no convolution and no dense layer that the benchmark could time alone.")
    return tuple(found), dict(left_out)


def _n_weights(layer: Layer) -> int:
    return layer.channels_out * (layer.channels_in * layer.kernel**2 + layer.has_bias)


def _activations(graph: Graph) -> dict[int, str]:
    """The activation that follows an op at once, by op: the benchmark times it with its layer."""
    maker = {tensor: op for op, row in enumerate(graph.op_outputs.rows()) for tensor in row}
    found = {}
    for op, inputs in enumerate(graph.op_inputs.rows()):
        activation = _ACTIVATIONS.get(graph.name_of(op))
        if activation is not None and inputs and inputs[0] in maker:
            found[maker[inputs[0]]] = activation
    return found


def _convolution(graph: Graph, op: int, batch_size: int, activation: str) -> tuple[Layer, int] | str:
    """The layer and its batch, or why there is none."""
    inputs, told = graph.op_inputs.rows()[op], graph.attributes_of(op)
    image, weight = (graph.shape_of(tensor, batch_size) for tensor in inputs[:2])
    output = graph.shape_of(graph.op_outputs.rows()[op][0], batch_size)
    if len(image) != 4 or image[2] != image[3] or weight[2] != weight[3]:
        return "not square"
    if told["groups"] != 1 or told["transposed"] or set(told["dilation"]) != {1}:
        return "grouped, dilated or transposed"
    layer = Layer(
        channels_in=image[1],
        channels_out=weight[0],
        input_size=image[2],
        kernel=weight[2],
        stride=told["stride"][0],
        is_padded=any(told["padding"]),
        has_bias=len(inputs) > 2,
        activation=activation,
    )
    return (layer, image[0]) if layer.output_size == output[2] else "padded otherwise"


def _dense(graph: Graph, op: int, batch_size: int, activation: str) -> tuple[Layer, int]:
    inputs = graph.op_inputs.rows()[op]
    rows, depth = graph.shape_of(inputs[-2], batch_size)
    width = graph.shape_of(inputs[-1], batch_size)[1]
    has_bias = graph.name_of(op) == "aten.addmm"
    return Layer(channels_in=depth, channels_out=width, has_bias=has_bias, activation=activation), rows
