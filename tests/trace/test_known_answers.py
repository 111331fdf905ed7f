"""What the shipped traces say, against what was published and what can be counted by hand."""

from decimal import Decimal

import pytest

import traincast as tc
from traincast.frontend.models.registry import ZOO
from traincast.trace.layers import by_kind

PUBLISHED = [name for name, model in ZOO.items() if model.gmacs is not None]


def kinds_of(name):
    return {layer.kind: layer for layer in by_kind(tc.load_model(name).layers(1))}


@pytest.mark.parametrize("name", ZOO)
def test_a_shipped_trace_has_the_published_number_of_parameters(name):
    assert tc.load_model(name).n_parameters == ZOO[name].n_parameters


@pytest.mark.parametrize("name", PUBLISHED)
def test_forward_multiply_adds_are_the_published_ones(name):
    published = ZOO[name].gmacs
    half_a_digit = 0.5 * 10.0 ** Decimal(str(published)).as_tuple().exponent
    assert tc.load_model(name).forward_flop(8) / 2 / 8 / 1e9 == pytest.approx(
        published, abs=0.01 * published + half_a_digit
    )


# Lu et al. 2017 (Modeling the resource requirements of convolutional neural networks): convolutions are 99 % of VGG-16.
@pytest.mark.parametrize("name", ["vgg16", "vgg19"])
def test_convolutions_are_99_percent_of_the_forward_flop_of_vgg(name):
    convolutions = kinds_of(name)["Conv2d"].forward_flop
    assert convolutions / tc.load_model(name).forward_flop(1) == pytest.approx(0.99, abs=0.005)


@pytest.mark.parametrize(
    ("name", "n_convolutions", "n_linears"),
    [("resnet18", 20, 1), ("resnet50", 53, 1), ("vgg16", 13, 3), ("vgg19", 16, 3), ("alexnet", 5, 3)],
)
def test_layers_are_as_many_as_the_paper_draws(name, n_convolutions, n_linears):
    kinds = kinds_of(name)
    assert (kinds["Conv2d"].n_layers, kinds["Linear"].n_layers) == (n_convolutions, n_linears)


def test_the_first_layer_of_vgg_can_be_counted_by_hand():
    first = next(layer for layer in tc.load_model("vgg16").layers(2) if layer.path == "features.0")
    assert (first.input_shape, first.output_shape) == ((2, 3, 224, 224), (2, 64, 224, 224))
    assert first.n_parameters == 64 * 3 * 9 + 64
    assert first.forward_flop == 2 * 2 * 224 * 224 * 64 * 3 * 9
    assert first.backward_flop == first.forward_flop  # the gradient of the weight; an image needs none


def test_a_transformer_layer_of_gpt2_can_be_counted_by_hand():
    trace, tokens, width = tc.load_model("gpt2"), 1024, 768
    products = 12 * width * width  # qkv 3, output 1, feed-forward 8
    attention = 2 * tokens * width
    by_hand = 2 * tokens * (12 * (products + attention) + 50_257 * width)
    assert trace.forward_flop(1) == by_hand
    assert trace.backward_flop(1) == 2 * by_hand


def test_the_flop_of_all_layers_is_the_flop_of_the_step():
    trace = tc.load_model("resnet50")
    layers = trace.layers(4)
    assert sum(layer.forward_flop for layer in layers) == trace.forward_flop(4)
    assert sum(layer.backward_flop for layer in layers) == trace.backward_flop(4)
    assert sum(layer.flop_fraction for layer in layers) == pytest.approx(1)
    assert sum(layer.n_parameters for layer in layers) == trace.n_parameters


@pytest.mark.parametrize("name", ZOO)
def test_nothing_in_the_zoo_is_uncosted_or_assumed(name):
    trace = tc.load_model(name)
    assert (trace.uncosted_ops, trace.assumptions, trace.covered_flop_fraction) == ((), (), 1.0)
