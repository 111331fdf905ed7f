"""What every method must do, whatever it believes about op times."""

from dataclasses import replace

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.methods import METHODS, make_method
from traincast.trace.flop import op_flop
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower

MODELS = ("resnet18", "mobilenet_v2", "bert-base")
DEVICES = ("P100-PCIe-16GB", "V100-PCIe-32GB", "A100-SXM4-80GB")
BATCH_SIZES = np.array([1, 3, 16, 64, 256])
# A network that learned layer times from rows promises no order between inputs that it never saw side by side.
ORDERED = tuple(name for name in METHODS if name != "layerwise")


@pytest.fixture(scope="module", params=MODELS)
def graph(request):
    return lower(tc.load_model(request.param))


def times(method, graph, device, batch_sizes=BATCH_SIZES, **changes):
    chosen = replace(find_device(device), **changes)
    return make_method(method).op_times(graph, chosen, batch_sizes, precision="fp32")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
class TestEveryMethod:
    def test_gives_every_op_a_time_that_can_be(self, method, device, graph):
        found = times(method, graph, device)
        shape = (len(BATCH_SIZES), graph.n_ops)
        assert found.seconds.shape == found.compute_s.shape == shape
        assert np.isfinite(found.seconds).all()
        assert (found.seconds >= 0).all()
        assert found.seconds.sum() > 0

    def test_divides_the_time_of_an_op_and_adds_nothing(self, method, device, graph):
        found = times(method, graph, device)
        assert (found.compute_s >= 0).all()
        assert (found.compute_s <= found.seconds * (1 + 1e-9)).all()

    def test_says_how_sure_it_is_of_every_op(self, method, device, graph):
        found = times(method, graph, device)
        assert found.log_sd.shape == (graph.n_ops,)
        assert np.isfinite(found.log_sd).all()
        assert (found.log_sd >= 0).all()
        assert (found.log_sd[(found.seconds > 0).any(axis=0)] > 0).all()

    def test_counts_what_it_has_no_figure_for(self, method, device, graph):
        found = times(method, graph, device)
        assert found.is_covered.shape == (graph.n_ops,)
        assert found.is_covered.dtype == bool
        assert (found.seconds[:, ~found.is_covered] == 0).all()
        with_flop = op_flop(graph, np.array([64]))[0] > 0
        assert (found.seconds[3, with_flop & found.is_covered] > 0).all()

    def test_leaves_views_to_the_host(self, method, device, graph):
        found = times(method, graph, device)
        silent = np.array([kind in (OpKind.VIEW, OpKind.ALLOCATION) for kind in op_kinds(graph)])
        assert (found.seconds[:, silent] == 0).all()

    def test_gives_many_batch_sizes_what_it_gives_one(self, method, device, graph):
        together = times(method, graph, device)
        for row, batch_size in enumerate(BATCH_SIZES):
            alone = times(method, graph, device, np.array([batch_size]))
            assert alone.seconds[0] == pytest.approx(together.seconds[row], rel=1e-9)
            assert alone.compute_s[0] == pytest.approx(together.compute_s[row], rel=1e-9)
            assert (alone.is_covered == together.is_covered).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", ORDERED)
def test_a_larger_batch_never_makes_a_shorter_step(method, device, graph):
    batch_sizes = np.array([1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 64, 100, 128, 255, 256, 512])
    step_s = times(method, graph, device, batch_sizes).seconds.sum(axis=1)
    assert (np.diff(step_s) >= 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", ORDERED)
def test_a_faster_device_is_never_slower(method, device, graph):
    slow = find_device(device)
    step_s = times(method, graph, device).seconds.sum(axis=1)
    for changes in (
        {"memory_bytes_per_s": 2 * slow.memory_bytes_per_s},
        {"fp32_flop_per_s": 2 * slow.fp32_flop_per_s, "tdp_w": 2 * slow.tdp_w},
        {"memory_bytes_per_s": 2 * slow.memory_bytes_per_s, "fp32_flop_per_s": 2 * slow.fp32_flop_per_s},
    ):
        faster_s = times(method, graph, device, **changes).seconds.sum(axis=1)
        assert (faster_s <= step_s * (1 + 1e-9)).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_later_generation_is_faster_on_a_large_batch(method, graph):
    seconds = [times(method, graph, device, np.array([128])).seconds.sum() for device in DEVICES]
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_known_by_its_name(method):
    assert make_method(method).name == method


def test_settings_go_to_the_method_that_has_them():
    assert make_method("paleo", ppp=0.5).ppp == 0.5
    assert make_method("paleo").ppp == 1.0
    assert make_method("traincast", layout="nhwc").layout == "nhwc"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("palio", {}, "method 'palio' is not known. Close names: paleo."),
        ("traincast", {"ppp": 0.5}, "PPP is a setting of the method paleo and has no effect with traincast"),
        ("layerwise", {"layout": "nhwc"}, "The method layerwise does not distinguish layouts: leave nhwc out"),
    ],
)
def test_a_setting_that_a_method_has_no_use_for_is_refused(name, options, words):
    with pytest.raises(InputError) as caught:
        make_method(name, **options)
    assert words in str(caught.value)


def test_a_layout_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="layout 'nchv'"):
        make_method("traincast", layout="nchv")


def test_the_default_is_our_own_method():
    assert tc.forecast("resnet18", "T4", 8).question.method.name == "traincast"
