"""A layer in a benchmark of its own: what it runs beside the layer, and when the sum of layers is the model."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.host import Host
from traincast.kernels.lone_layer import Layer, Part, lone_layer_graph, lone_layer_time
from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import step_timeline
from traincast.trace.check import check_graph
from traincast.trace.flop import op_flop
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

DEVICE = find_device("P100-PCIe-16GB")
BATCHES = np.array([2, 8])
CONVOLUTION = Layer(channels_in=3, channels_out=8, input_size=10, kernel=3)
DENSE = Layer(channels_in=20, channels_out=10)
ONLY_IN_BENCHMARKS = (Part.LOSS, Part.DATA, Part.LAYOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A device of one flop and one byte a second; `*_weight` says which of them take time."""

    flop_weight: float = 0.0
    bytes_weight: float = 0.0
    name: str = "linear"

    def op_times(self, graph, device, batch_sizes, *, precision):
        seconds = self.flop_weight * op_flop(graph, batch_sizes) + self.bytes_weight * op_bytes(graph, batch_sizes)
        return OpTimes(
            seconds=seconds,
            compute_s=np.zeros_like(seconds),
            log_sd=np.zeros(graph.n_ops),
            error_group=np.zeros(graph.n_ops, dtype=np.int64),
            is_covered=np.ones(graph.n_ops, dtype=bool),
        )


def host(*, call_s=0.0, dispatch_s=0.0):
    return Host(
        name="test",
        forward_dispatch_s=dispatch_s,
        backward_dispatch_s=dispatch_s,
        optimizer_dispatch_s=dispatch_s,
        view_dispatch_s=0.0,
        call_s=call_s,
    )


def names(graph):
    return Counter(graph.name_of(op).partition(".")[2] for op in range(graph.n_ops))


def bytes_of(graph, part, batch=2):
    return float(op_bytes(graph, np.array([batch]))[0, graph.op_module == part].sum())


def test_a_forward_call_is_product_bias_and_activation():
    assert names(lone_layer_graph(DENSE, None)) == {"mm": 1, "add": 1, "relu": 1}


def test_a_training_call_updates_weight_bias_input_and_target():
    assert names(lone_layer_graph(DENSE, "sgd"))["apply_sgd_"] == 4
    assert names(lone_layer_graph(DENSE, "sgd", without=[Part.DATA]))["apply_sgd_"] == 2


@pytest.mark.parametrize("layer", [CONVOLUTION, DENSE])
@pytest.mark.parametrize("optimizer", [None, "sgd", "adam"])
def test_its_graph_is_a_valid_one(layer, optimizer):
    check_graph(lone_layer_graph(layer, optimizer), where="the benchmark")


def test_flop_are_those_of_forward_and_two_gradients():
    forward = 2 * 64 * 8 * 27 * 2  # 8 x 8 places, 8 channels, windows of 3 x 3 x 3, two images
    assert op_flop(lone_layer_graph(CONVOLUTION, None), np.array([2])).sum() == forward
    assert op_flop(lone_layer_graph(CONVOLUTION, "adam"), np.array([2])).sum() == 3 * forward
    without = lone_layer_graph(CONVOLUTION, "adam", without=[Part.INPUT_GRADIENT])
    assert op_flop(without, np.array([2])).sum() == 2 * forward


@pytest.mark.parametrize(("optimizer", "passes"), [("sgd", 3), ("momentum", 5), ("adam", 7)])
def test_updates_of_input_and_target_move_them_several_times(optimizer, passes):
    """SGD reads variable and gradient and writes the variable; each state is read and written besides."""
    input_bytes, target_bytes = 4 * 2 * 20, 4 * 2 * 10
    negated = 2 * target_bytes  # the target's gradient is that of the output with another sign
    moved = bytes_of(lone_layer_graph(DENSE, optimizer), Part.DATA)
    assert moved == passes * (input_bytes + target_bytes) + negated


def test_its_loss_reads_and_writes_the_size_of_the_output_fourteen_times():
    output = 4 * 2 * 10
    # Forward: subtract 3, square 2, mean 1 and a scalar. Backward: fill 1, divide 2, double 2, multiply 3.
    assert bytes_of(lone_layer_graph(DENSE, "sgd"), Part.LOSS) == 14 * output + 4


def test_only_convolutions_change_the_layout():
    assert names(lone_layer_graph(DENSE, "sgd"))["change_layout"] == 0
    assert names(lone_layer_graph(CONVOLUTION, None))["change_layout"] == 2
    assert names(lone_layer_graph(CONVOLUTION, "sgd"))["change_layout"] == 4


@pytest.mark.parametrize(("kernel", "is_padded"), [(5, False), (5, True), (1, False), (3, False)])
def test_a_convolution_is_never_a_product_because_its_layout_is_turned(kernel, is_padded):
    layer = Layer(channels_in=4, channels_out=2, input_size=5, kernel=kernel, is_padded=is_padded)
    found = names(lone_layer_graph(layer, None))
    assert (found["convolution"], found["mm"], found["change_layout"]) == (1, 0, 2)


def test_a_filter_is_turned_in_the_convolution_and_in_both_gradients():
    assert names(lone_layer_graph(CONVOLUTION, None))["change_filter"] == 1
    assert names(lone_layer_graph(CONVOLUTION, "sgd"))["change_filter"] == 3
    assert names(lone_layer_graph(DENSE, "sgd"))["change_filter"] == 0


@pytest.mark.parametrize(
    ("kernel", "stride", "size", "is_padded", "n_copies"),
    [
        (3, 1, 8, True, 0),  # one row on each side
        (2, 1, 8, True, 3),  # one row on one side
        (3, 2, 8, True, 3),  # the window of the last row reaches one beyond
        (3, 2, 7, True, 0),
        (1, 3, 8, True, 0),  # nothing is added
        (2, 1, 8, False, 0),
    ],
)
def test_uneven_padding_copies_the_image_in_the_convolution_and_in_both_gradients(
    kernel, stride, size, is_padded, n_copies
):
    layer = Layer(channels_in=4, channels_out=2, input_size=size, kernel=kernel, stride=stride, is_padded=is_padded)
    assert names(lone_layer_graph(layer, "sgd"))["pad"] == n_copies


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (Layer(channels_in=1, channels_out=1, input_size=7, kernel=3, stride=2), 3),
        (Layer(channels_in=1, channels_out=1, input_size=7, kernel=3, stride=2, is_padded=True), 4),
        (DENSE, 1),
    ],
)
def test_output_sizes_are_tensorflows(layer, size):
    assert layer.output_size == size


def test_alone_a_layer_costs_more_by_exactly_its_call_and_the_parts_of_the_benchmark():
    method = Linear(bytes_weight=1.0)
    alone = lone_layer_time(CONVOLUTION, BATCHES, optimizer="adam", device=DEVICE, host=host(call_s=1e6), method=method)
    graph = lone_layer_graph(CONVOLUTION, "adam", without=ONLY_IN_BENCHMARKS)
    times = method.op_times(graph, DEVICE, BATCHES, precision="fp32")
    in_a_model_s = step_timeline(graph, times, host()).step_s
    extra_s = alone.device_s[:, ONLY_IN_BENCHMARKS].sum(axis=1)
    assert (extra_s > 0).all()
    assert alone.seconds == pytest.approx(in_a_model_s + 1e6 + extra_s)
    assert alone.waiting_s == pytest.approx([0, 0], abs=1e-6)


def test_a_layer_without_work_is_a_call_and_its_dispatches():
    alone = lone_layer_time(
        DENSE, BATCHES, optimizer="sgd", device=DEVICE, host=host(call_s=100.0, dispatch_s=1.0), method=Linear()
    )
    # 3 forward, 3 loss, 4 of its gradient, target, activation, bias, weight, input, and 4 updates
    assert alone.seconds.tolist() == [119, 119]
    assert alone.waiting_s.tolist() == [19, 19]


def test_without_calls_and_trained_data_the_sum_of_layers_is_the_model():
    """On a device where only products take time, and counting the first layer's input gradient nowhere."""
    method = Linear(flop_weight=1.0)
    layers = [
        Layer(channels_in=1, channels_out=32, input_size=28, kernel=3),
        Layer(channels_in=32, channels_out=32, input_size=13, kernel=3),
        Layer(channels_in=800, channels_out=128),
        Layer(channels_in=128, channels_out=10, activation="softmax"),
    ]
    total_s = np.zeros(len(BATCHES))
    for place, layer in enumerate(layers):
        alone = lone_layer_time(layer, BATCHES, optimizer="adam", device=DEVICE, host=host(), method=method)
        needed = [Part.LAYER] if place == 0 else [Part.LAYER, Part.INPUT_GRADIENT]
        total_s += alone.device_s[:, needed].sum(axis=1)
    graph = lower(tc.load_model("mnist_cnn_2conv"), target="cuda", settings=Settings("fp32", "adam"))
    times = method.op_times(graph, DEVICE, BATCHES, precision="fp32")
    assert step_timeline(graph, times, host()).step_s == pytest.approx(total_s)


def test_mistakes_name_what_is_known():
    with pytest.raises(InputError, match="Unknown activation 'swish'; known are none, relu"):
        Layer(channels_in=1, channels_out=1, activation="swish")
    with pytest.raises(InputError, match="A kernel of 3 does not fit into images of 2"):
        Layer(channels_in=1, channels_out=1, input_size=2, kernel=3)
    with pytest.raises(InputError, match="No fused update is known for 'lion'; there are: sgd, momentum"):
        lone_layer_graph(DENSE, "lion")
