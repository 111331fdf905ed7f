"""Paleo's arithmetic: the published figures, its layers by hand, and the fit of PPP."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

import traincast as tc
from traincast.errors import InputError
from traincast.frontend.models.blocks import BasicConv2d
from traincast.frontend.models.inception import inception_v3
from traincast.frontend.models.vgg import vgg16
from traincast.hardware.device import Device
from traincast.kernels.paleo import MeasuredStep, Paleo, fit_ppp
from traincast.kernels.paleo_costs import op_costs
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.units import GIB, GIGA

torch.set_num_threads(1)

K80_BOARD = Device(name="K80", fp32_flop_per_s=5.6e12, memory_bytes=24 * GIB, memory_bytes_per_s=480e9)
# One second a flop and one second a byte: times can be counted on paper.
UNIT = Device(name="unit", fp32_flop_per_s=1.0, memory_bytes=GIB, memory_bytes_per_s=GIGA / GIB)


def captured(module, *shape):
    with torch.device("meta"):
        net = module()
    trace = tc.capture(net, lambda batch_size: torch.empty(batch_size, *shape, device="meta"))
    return lower(trace)


def zoo(name, **settings):
    return lower(tc.load_model(name), settings=Settings(**settings) if settings else None)


def times(graph, *, batch_size, ppp=1.0, device=K80_BOARD, precision="fp32"):
    return Paleo(ppp).op_times(graph, device, np.array([batch_size]), precision=precision)


def phase_s(graph, phase, **how):
    return times(graph, **how).seconds[0, graph.op_phase == phase].sum()


def ops(graph, name):
    return [op for op in range(graph.n_ops) if graph.name_of(op) == name]


def unit_s(graph, name, *, batch_size):
    """Seconds of all ops of one name on the unit device: their flop plus their bytes."""
    return times(graph, batch_size=batch_size, device=UNIT).seconds[0, ops(graph, name)].tolist()


# The nets of the published tool (nets/vgg16.json, nets/inception_v3.json) from those of the zoo.


def tool_vgg16():
    """Its first fully connected layer is a convolution without padding, and no pool comes before it."""
    net = vgg16(n_classes=1000)
    net.avgpool = nn.Identity()
    net.classifier[0] = nn.Sequential(nn.Unflatten(1, (512, 7, 7)), nn.Conv2d(512, 4096, 7), nn.Flatten())
    return net


def tool_inception_v3():
    """Biases in place of batch norm, and Mixed_6a lacks the second of its three convolutions in a row."""
    net = inception_v3(n_classes=1000)
    net.Mixed_6a.branch3x3dbl_2 = nn.Identity()
    net.Mixed_6a.branch3x3dbl_3 = BasicConv2d(64, 96, 3, stride=2)
    for block in net.modules():
        if isinstance(block, BasicConv2d):
            old = block.conv
            block.conv = nn.Conv2d(old.in_channels, old.out_channels, old.kernel_size, old.stride, old.padding)
            block.bn = nn.Identity()
    net.avgpool = nn.AvgPool2d(8, stride=2)
    return net


PUBLISHED = [  # what `paleo simulate --use_only_gemm --device_name=K80` prints, to the digits that are handed down
    (tool_vgg16, 224, 64, 1.0, "370.2", "845.8", "3.27"),
    (tool_inception_v3, 299, 128, 0.62, "467.9", "1010.5", "0.561"),
]


@pytest.mark.parametrize(("net", "size", "batch_size", "ppp", "forward", "backward", "update"), PUBLISHED)
def test_the_published_tool_gives_the_same_times_for_the_same_net(
    net, size, batch_size, ppp, forward, backward, update
):
    graph = captured(net, 3, size, size)
    expected = {Phase.FORWARD: forward, Phase.BACKWARD: backward, Phase.OPTIMIZER: update}
    for phase, printed in expected.items():
        n_decimals = len(printed.partition(".")[2])
        milliseconds = 1e3 * phase_s(graph, phase, batch_size=batch_size, ppp=ppp)
        assert f"{milliseconds:.{n_decimals}f}" == printed, phase.name


def test_vgg16_of_the_zoo_differs_by_its_pool_of_one_and_by_the_input_gradient_of_a_linear_layer():
    ours, theirs = zoo("vgg16"), captured(tool_vgg16, 3, 224, 224)
    n_map, n_hidden = 64 * 512 * 7 * 7, 64 * 4096
    second_per_byte, second_per_flop = 1 / (480 * 2**30), 1 / 5.6e12
    pool_s = 2 * n_map * second_per_flop + 2 * 4 * n_map * second_per_byte
    # As a convolution it is 7 x 7 products with 7 x 7 weights on a gradient that is padded from 1 to 13.
    wasted_flop = 48 * 2 * n_hidden * 512 * 7 * 7
    wasted_s = wasted_flop * second_per_flop + 4 * n_hidden * (13 * 13 - 1) * second_per_byte

    def difference_s(phase):
        return phase_s(theirs, phase, batch_size=64) - phase_s(ours, phase, batch_size=64)

    assert difference_s(Phase.FORWARD) == pytest.approx(-pool_s, rel=1e-6)
    assert difference_s(Phase.BACKWARD) == pytest.approx(wasted_s - pool_s, rel=1e-6)
    assert difference_s(Phase.OPTIMIZER) == pytest.approx(0, abs=1e-12)


def as_the_tool_does_it(*, image, kernel, stride, padding, n_in, n_out, batch_size):
    """Flop and bytes of forward, input gradient and filter gradient by way of the tool's stand-in convolutions."""
    output = (image + 2 * padding - kernel) // stride + 1
    spread = (output - 1) * stride + 1
    before = kernel - 1 - padding
    after = image + kernel - 1 - spread - before
    spread += after - before == 1
    filled = output**2 / spread**2

    def bytes_of(*elements):
        return 4 * sum(elements)

    padded, filters = (image + 2 * padding) ** 2 * n_in * batch_size, kernel**2 * n_in * n_out
    forward = 2 * filters * output**2 * batch_size + bytes_of(padded, filters, output**2 * n_out * batch_size)
    moved = 2 * spread**2 * n_out * batch_size * filled if filled < 1 else 0
    gradient = (spread + 2 * before) ** 2 * n_out * batch_size
    data = 2 * filters * image**2 * batch_size + moved + bytes_of(gradient, filters, image**2 * n_in * batch_size)
    stand_in = spread**2 * batch_size * n_out * filled
    filter_ = 2 * stand_in * kernel**2 * n_in + bytes_of(padded, stand_in, filters)
    return forward, data, filter_


@given(
    image=st.integers(6, 20),
    kernel=st.sampled_from([1, 2, 3, 5]),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    n_in=st.integers(1, 3),
    n_out=st.integers(1, 3),
)
def test_a_convolution_costs_what_the_tools_stand_in_convolutions_cost(image, kernel, stride, padding, n_in, n_out):
    assume(padding < kernel and (image + 2 * padding - kernel) % stride <= 1)  # the tool refuses larger remainders
    layer = {"image": image, "kernel": kernel, "stride": stride, "padding": padding, "n_in": n_in, "n_out": n_out}
    graph = captured(
        lambda: nn.Sequential(nn.Conv2d(1, n_in, 1), nn.Conv2d(n_in, n_out, kernel, stride, padding)), 1, image, image
    )
    forward, data, filter_ = as_the_tool_does_it(**layer, batch_size=4)
    assert unit_s(graph, "aten.convolution", batch_size=4)[1] == pytest.approx(forward)
    assert unit_s(graph, "aten.convolution_backward", batch_size=4)[0] == pytest.approx(data + filter_)


def test_a_first_convolution_has_no_input_gradient_and_a_frozen_one_no_filter_gradient():
    def net():
        layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        layers[1].requires_grad_(False)
        return layers

    graph = captured(net, 3, 8, 8)
    first_forward, _ = unit_s(graph, "aten.convolution", batch_size=2)
    second_backward, first_backward = unit_s(graph, "aten.convolution_backward", batch_size=2)
    assert first_backward == first_forward  # the filter gradient alone: the same sums as forward
    weights, image, padded_gradient = 3 * 3 * 4 * 4, 2 * 4 * 6 * 6, 2 * 4 * 8 * 8
    assert second_backward == 2 * weights * 2 * 6 * 6 + 4 * (padded_gradient + weights + image)


def test_a_grouped_convolution_has_the_weights_of_its_groups_only():
    graph = captured(lambda: nn.Conv2d(4, 4, 3, groups=4), 4, 5, 5)
    # 4 x 9 weights at 9 positions of 2 samples; reads 2 x 4 x 25 and the weights, writes 2 x 4 x 9.
    assert unit_s(graph, "aten.convolution", batch_size=2) == [2 * 36 * 9 * 2 + 4 * (200 + 36 + 72)]


def test_a_transposed_convolution_is_a_convolution_backwards():
    plain = captured(lambda: nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 5, 3, stride=2)), 3, 9, 9)
    mirrored = captured(lambda: nn.Sequential(nn.Conv2d(5, 5, 1), nn.ConvTranspose2d(5, 3, 3, stride=2)), 5, 4, 4)
    forward = unit_s(plain, "aten.convolution", batch_size=2)[1]
    backward = unit_s(plain, "aten.convolution_backward", batch_size=2)[0]
    assert unit_s(mirrored, "aten.convolution", batch_size=2)[1] == backward - forward
    assert unit_s(mirrored, "aten.convolution_backward", batch_size=2)[0] == 2 * forward


def test_a_linear_layer_reads_both_factors_and_writes_the_product_three_times():
    graph = captured(lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7)), 3)
    # batch 2: X is 2 x 5, W is 5 x 7, Y is 2 x 7; each of the three products is 2 x 5 x 7 multiply-adds.
    each = 2 * 2 * 5 * 7 + 4 * (10 + 35 + 14)
    assert unit_s(graph, "aten.addmm", batch_size=2)[1] == each
    assert unit_s(graph, "aten.mm", batch_size=2)[:2] == [each, each]


@pytest.mark.parametrize(
    ("pool", "forward", "window"),
    [
        (nn.MaxPool2d(2), "aten.max_pool2d_with_indices", 4),
        (nn.AvgPool2d(3, stride=2, padding=1), "aten.avg_pool2d", 9),
        (nn.AdaptiveAvgPool2d(4), "aten._adaptive_avg_pool2d", 4),
    ],
)
def test_pooling_costs_its_windows_and_both_maps_in_both_directions(pool, forward, window):
    graph = captured(lambda: nn.Sequential(nn.Conv2d(3, 3, 1), pool), 3, 8, 8)
    n_large, n_small = 2 * 3 * 64, 2 * 3 * 16
    expected = [2 * window * n_small + 4 * (n_large + n_small)]
    assert unit_s(graph, forward, batch_size=2) == unit_s(graph, f"{forward}_backward", batch_size=2) == expected


def test_pooling_over_a_whole_map_is_pooling_though_pytorch_takes_a_mean():
    graph = captured(lambda: nn.Sequential(nn.Conv2d(3, 3, 1), nn.AdaptiveAvgPool2d(1)), 3, 8, 8)
    n_large, n_small = 2 * 3 * 64, 2 * 3
    pooled, loss = unit_s(graph, "aten.mean", batch_size=2)
    assert (pooled, loss) == (2 * n_large + 4 * (n_large + n_small), 0)
    assert sorted(unit_s(graph, "aten.div", batch_size=2)) == [0, pooled]


def test_a_mean_over_features_is_not_pooling():
    class Centred(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y - y.mean(-1, keepdim=True)

    assert sum(unit_s(captured(lambda: Centred(4, 4), 5, 4), "aten.mean", batch_size=2)) == 0


def test_dropout_costs_one_flop_and_two_moves_an_element_in_both_directions():
    graph = captured(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), 4)
    assert unit_s(graph, "aten.native_dropout", batch_size=2) == [8 + 4 * 16]
    assert unit_s(graph, "aten.native_dropout_backward", batch_size=2) == [8 + 4 * 16]


def test_what_the_tool_ignores_takes_no_time_and_is_covered():
    graph = zoo("resnet50")
    result = times(graph, batch_size=8)
    for name in ("aten.batch_norm", "aten.batch_norm_backward", "aten.relu_", "aten.add_", "aten._log_softmax"):
        assert ops(graph, name)
        assert not result.seconds[0, ops(graph, name)].any()
    assert result.is_covered.all()


@pytest.mark.parametrize(("name", "left_out"), [("bert-base", "attention"), ("lstm_lm", "rnn")])
def test_products_without_a_formula_are_not_covered(name, left_out):
    graph = zoo(name)
    result = times(graph, batch_size=2)
    uncovered = {graph.name_of(op) for op in np.flatnonzero(~result.is_covered)}
    assert uncovered
    assert all(left_out in op for op in uncovered)
    assert not result.seconds[0, ~result.is_covered].any()


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adagrad", "adamw"])
@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_the_update_is_that_of_plain_sgd_at_the_peaks_whatever_the_optimizer_and_ppp(optimizer, target):
    trace = tc.load_model("mnist_cnn")
    graph = lower(trace, target=target, settings=Settings("fp32", optimizer))
    update_s = phase_s(graph, Phase.OPTIMIZER, batch_size=2, ppp=0.25, device=UNIT)
    assert update_s == pytest.approx(trace.n_parameters * (2 + 3 * 4))


def test_bytes_are_those_of_the_precision():
    full, half = zoo("vgg16"), zoo("vgg16", precision="bf16", optimizer="sgd")
    moved = [op_costs(graph, np.array([4])).moved_bytes.sum() for graph in (full, half)]
    assert moved[0] == pytest.approx(2 * moved[1])


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "bert-base", "gpt2"])
def test_forward_flop_of_convolutions_and_linear_layers_are_those_of_the_trace(name):
    graph = zoo(name)
    chosen = ops(graph, "aten.convolution") + ops(graph, "aten.addmm") + ops(graph, "aten.mm")
    batch_sizes = np.array([3, 8])
    ours, traced = op_costs(graph, batch_sizes).flop, op_flop(graph, batch_sizes)
    assert np.array_equal(ours[:, chosen], traced[:, chosen])


def test_batch_sizes_are_rows():
    graph = zoo("inception_v3")
    together = Paleo(0.5).op_times(graph, K80_BOARD, np.array([1, 16, 7]), precision="fp32")
    for row, batch_size in enumerate([1, 16, 7]):
        alone = times(graph, batch_size=batch_size, ppp=0.5)
        assert np.allclose(together.seconds[row], alone.seconds[0], rtol=1e-12)
        assert np.allclose(together.compute_s[row], alone.compute_s[0], rtol=1e-12)


MODELS = st.sampled_from(["mnist_cnn", "cifar_resnet20", "bert-base"])


@given(name=MODELS, ppp=st.floats(0.01, 1), batch_size=st.integers(1, 64))
def test_half_the_ppp_doubles_every_op_but_the_update(name, ppp, batch_size):
    graph = zoo(name)
    whole, half = (times(graph, batch_size=batch_size, ppp=value).seconds[0] for value in (ppp, ppp / 2))
    is_update = graph.op_phase == Phase.OPTIMIZER
    assert np.allclose(half[~is_update], 2 * whole[~is_update], rtol=1e-12)
    assert np.array_equal(half[is_update], whole[is_update])


@given(name=MODELS, compute=st.floats(1, 10), memory=st.floats(1, 10), batch_size=st.integers(1, 64))
def test_more_flop_per_s_or_bandwidth_never_slows_an_op(name, compute, memory, batch_size):
    graph = zoo(name)
    faster = replace(K80_BOARD, fp32_flop_per_s=5.6e12 * compute, memory_bytes_per_s=480e9 * memory)
    before, after = (times(graph, batch_size=batch_size, device=device).seconds for device in (K80_BOARD, faster))
    assert (after <= before * (1 + 1e-12)).all()


@pytest.mark.parametrize("ppp", [0.0, -0.5, 1.01, 62, math.nan, math.inf])
def test_a_ppp_outside_its_range_is_refused(ppp):
    with pytest.raises(InputError, match=r"PPP is the fraction of the peaks that is reached: above 0, at most 1, not "):
        Paleo(ppp)


def measured(name, batch_size, step_s, device=K80_BOARD):
    return MeasuredStep(graph=zoo(name), device=device, batch_size=batch_size, precision="fp32", step_s=step_s)


def predicted_s(name, batch_size, ppp):
    return float(times(zoo(name), batch_size=batch_size, ppp=ppp).seconds.sum())


@given(ppp=st.floats(0.02, 0.99))
def test_the_fit_finds_the_ppp_that_made_the_steps(ppp):
    cases = [("mnist_cnn", 32), ("mnist_cnn", 1), ("cifar_resnet20", 8)]
    fitted = fit_ppp([measured(name, batch_size, predicted_s(name, batch_size, ppp)) for name, batch_size in cases])
    assert fitted.ppp == pytest.approx(ppp)
    assert fitted.mean_absolute_log_error == pytest.approx(0, abs=1e-9)
    assert not fitted.is_clipped


def test_the_fit_is_a_median_that_one_strange_step_does_not_move():
    steps = [measured("cifar_resnet20", 8, predicted_s("cifar_resnet20", 8, ppp)) for ppp in (0.4, 0.41, 0.001)]
    assert fit_ppp(steps).ppp == pytest.approx(0.4)


@given(ppps=st.lists(st.floats(0.05, 1), min_size=1, max_size=5), other=st.floats(0.05, 1))
def test_no_other_ppp_is_nearer_to_the_time_that_it_scales(ppps, other):
    graph = zoo("mnist_cnn")
    update_s = phase_s(graph, Phase.OPTIMIZER, batch_size=8)
    steps = [measured("mnist_cnn", 8, predicted_s("mnist_cnn", 8, ppp)) for ppp in ppps]
    scaled_s = predicted_s("mnist_cnn", 8, 1.0) - update_s

    def error(ppp):
        return sum(abs(math.log(scaled_s / ppp / (step.step_s - update_s))) for step in steps)

    assert error(fit_ppp(steps).ppp) <= error(other) + 1e-9


def test_steps_faster_than_the_peaks_allow_give_one_and_say_so():
    fitted = fit_ppp([measured("cifar_resnet20", 8, predicted_s("cifar_resnet20", 8, 1.0) / 2)])
    assert (fitted.ppp, fitted.is_clipped) == (1.0, True)
    assert fitted.mean_absolute_log_error == pytest.approx(math.log(2))


@pytest.mark.parametrize("step_s", [0.0, -1.0, 1e-9, math.nan, math.inf])
def test_a_step_that_cannot_be_is_refused(step_s):
    with pytest.raises(InputError, match=r"A step cannot take .* s: its update alone takes"):
        fit_ppp([measured("mnist_cnn", 8, step_s)])


def test_a_fit_to_nothing_is_refused():
    with pytest.raises(InputError, match="PPP needs at least one measured step"):
        fit_ppp([])
    elementwise = captured(lambda: nn.PReLU(), 4)
    step = MeasuredStep(graph=elementwise, device=K80_BOARD, batch_size=2, precision="fp32", step_s=1.0)
    with pytest.raises(InputError, match="PPP needs steps with convolutions or matrix products"):
        fit_ppp([step])
