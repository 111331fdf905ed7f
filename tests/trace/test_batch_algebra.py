"""One trace holds for every batch size."""

import numpy as np
import pytest
import torch
from counted_step import counted_flop
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import traincast as tc
from traincast.errors import InputError
from traincast.memory.timeline import peak_bytes
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, Settings
from traincast.trace.traffic import op_bytes

CNNS = ["alexnet", "vgg16", "googlenet", "inception_v3", "resnet50", "densenet121", "mobilenet_v2", "cifar_resnet20"]
MODELS = ["resnet18", "mobilenet_v2", "bert-base", "gpt2", "lstm_lm", "vit_b_16"]
batch_sizes = st.integers(1, 300)

convolutions = st.builds(
    lambda channels, kernel, stride: (channels, kernel, stride),
    st.integers(1, 6),
    st.sampled_from([1, 3, 5]),
    st.integers(1, 2),
)


def network(layers, widths):
    """Convolutions with what often goes with them, then a mean over the image and linear layers."""
    modules, channels = [], 3
    for number, (out, kernel, stride) in enumerate(layers):
        modules += [nn.Conv2d(channels, out, kernel, stride=stride, padding=kernel // 2), nn.ReLU()]
        modules += [nn.BatchNorm2d(out)] if number % 2 else []
        channels = out
    modules += [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    channels *= 4
    for width in widths:
        modules.append(nn.Linear(channels, width))
        channels = width
    return nn.Sequential(*modules)


@given(
    layers=st.lists(convolutions, min_size=1, max_size=3),
    widths=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    batch=batch_sizes,
)
def test_a_random_network_has_at_any_batch_the_flop_and_shapes_of_a_run_at_that_batch(layers, widths, batch):
    with torch.device("meta"):
        module, inputs = network(layers, widths), torch.zeros(batch, 3, 12, 12)
    trace = tc.capture(module, lambda n: torch.zeros(n, 3, 12, 12))
    assert (trace.forward_flop(batch), trace.backward_flop(batch)) == counted_flop(module, inputs)
    shapes, x = {}, inputs
    for path, layer in module.named_children():
        x = layer(x)
        shapes[path] = tuple(x.shape)
    found = {layer.path: layer.output_shape for layer in trace.layers(batch) if layer.path}
    assert found == {path: shapes[path] for path in found}
    assert set(found) >= {path for path, layer in module.named_children() if isinstance(layer, nn.Conv2d | nn.Linear)}


@pytest.mark.parametrize("name", CNNS)
def test_the_flop_of_a_convolution_network_is_linear_in_the_batch(name):
    trace = tc.load_model(name)
    one = trace.forward_flop(1)
    assert [trace.forward_flop(batch) for batch in (2, 7, 256)] == [2 * one, 7 * one, 256 * one]


@given(name=st.sampled_from(MODELS), one=batch_sizes, other=batch_sizes)
def test_the_bytes_of_no_op_fall_with_the_batch(name, one, other):
    moved = op_bytes(tc.load_model(name).graph, np.array(sorted([one, other])))
    assert (moved[0] <= moved[1]).all()


@given(
    name=st.sampled_from(["resnet18", "lstm_lm", "vit_b_16"]),
    precision=st.sampled_from(PRECISIONS),
    optimizer=st.sampled_from(OPTIMIZERS),
    sizes=st.lists(batch_sizes, min_size=2, max_size=5),
)
def test_the_peak_never_falls_with_the_batch(name, precision, optimizer, sizes):
    lowered = lower(tc.load_model(name), target="cuda", settings=Settings(precision, optimizer))
    peaks = peak_bytes(lowered, np.array(sorted(sizes)))
    assert (np.diff(peaks) >= 0).all()


@settings(max_examples=10)
@given(sizes=st.lists(batch_sizes, min_size=1, max_size=6))
def test_many_batch_sizes_at_once_are_as_one_by_one(sizes):
    trace = tc.load_model("cifar_resnet20")
    together = trace.flop(np.array(sizes))
    assert [float(row.sum()) for row in together] == [
        float(trace.forward_flop(size) + trace.backward_flop(size)) for size in sizes
    ]
    graph = trace.graph
    assert peak_bytes(graph, np.array(sizes)).tolist() == [
        int(peak_bytes(graph, np.array([size]))[0]) for size in sizes
    ]


@pytest.mark.parametrize(
    ("batch_size", "words"),
    [
        (0, "batch size 0 is out of range"),
        (-4, "batch size -4 is out of range"),
        (10**9, "batch size 1,000,000,000 is out of range"),
        (True, "batch size True is not a whole number"),
        (2.0, "batch size 2.0 is not a whole number"),
        ("8", "batch size '8' is not a whole number"),
        (None, "batch size None is not a whole number"),
    ],
)
@pytest.mark.parametrize("question", ["forward_flop", "backward_flop", "layers"])
def test_a_batch_size_that_cannot_be_is_refused_in_one_sentence(question, batch_size, words):
    with pytest.raises(InputError) as caught:
        getattr(tc.load_model("mnist_cnn"), question)(batch_size)
    assert str(caught.value).startswith(words)
    assert "from 1 to 10,000,000" in str(caught.value)


def test_a_whole_number_of_numpy_is_a_batch_size():
    trace = tc.load_model("mnist_cnn")
    assert trace.forward_flop(np.int32(4)) == trace.forward_flop(4)
    assert trace.layers(np.int64(4)) == trace.layers(4)
