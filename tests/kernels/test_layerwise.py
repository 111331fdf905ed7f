"""The layer-wise method: what each op is given, what is covered, and what is refused."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import traincast as tc
from traincast.errors import FileFormatError, InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.features import device_features, feature_matrix
from traincast.kernels.layerwise.graph_layers import find_layers, graph_optimizer
from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, KINDS, OPTIMIZERS
from traincast.kernels.layerwise.layerwise import Layerwise
from traincast.kernels.layerwise.network import Network, fold_scaling, network_bytes, parse_network, shipped_network
from traincast.kernels.layerwise.rows import DEVICES
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

V100 = find_device("V100-SXM2-16GB")


def lowered(name, optimizer="sgd", target="cuda"):
    return lower(tc.load_model(name), target=target, settings=Settings("fp32", optimizer))


def times(graph, *batch_sizes, device=V100, correction=1.0, precision="fp32"):
    return Layerwise(correction).op_times(graph, device, np.array(batch_sizes), precision=precision)


@pytest.mark.parametrize("name", ["resnet50", "vgg16"])
@pytest.mark.parametrize("device", DEVICES.values())
def test_every_layer_of_a_convolutional_network_takes_a_finite_positive_time(name, device):
    graph = lowered(name)
    result = times(graph, 1, 16, 256, device=find_device(device))
    is_product = op_flop(graph, np.array([16]))[0] > 0
    assert np.isfinite(result.seconds).all()
    assert (result.seconds[:, is_product] > 0).all()
    assert (result.seconds[:, ~is_product] == 0).all()
    assert (result.compute_s <= result.seconds).all()


@pytest.mark.parametrize("correction", [1.5, 2.0, 0.5])
def test_the_correction_divides_every_time(correction):
    graph = lowered("vgg16")
    plain, corrected = times(graph, 8, 64), times(graph, 8, 64, correction=correction)
    np.testing.assert_array_equal(corrected.seconds, plain.seconds / correction)
    np.testing.assert_array_equal(corrected.compute_s, plain.compute_s / correction)


@pytest.mark.parametrize("correction", [0, -1.5, float("nan"), float("inf")])
def test_a_correction_that_cannot_divide_is_refused(correction):
    with pytest.raises(InputError, match="above 0, not"):
        Layerwise(correction)


def test_forward_and_backward_of_a_layer_add_up_to_the_figure_for_both():
    graph = lowered("patchcamelyon_cnn", "adam")
    seconds = times(graph, 32).seconds[0]
    for layers in find_layers(graph):
        features = feature_matrix(
            layers.table(graph, np.array([32])).with_optimizer(OPTIMIZERS.index("Adam")), device_features(V100)
        )
        backward_s = np.bincount(layers.backward_layer, seconds[layers.backward_ops])
        whole_s = shipped_network(layers.kind).predict_s(features)
        np.testing.assert_allclose(seconds[layers.ops] + backward_s, whole_s)


def test_the_two_products_of_a_linear_layers_backward_share_equally():
    graph = lowered("vgg16")
    _, dense = find_layers(graph)
    seconds = times(graph, 32).seconds[0][dense.backward_ops]
    assert len(dense.ops) == 3
    assert seconds[0::2] == pytest.approx(seconds[1::2])


def test_optimizer_ops_take_nothing_of_their_own():
    graph = lowered("resnet50", "adam")
    result = times(graph, 32)
    is_update = graph.op_phase == Phase.OPTIMIZER
    assert is_update.any()
    assert (result.seconds[:, is_update] == 0).all()
    assert result.is_covered[is_update].all()


def test_a_costlier_optimizer_makes_a_step_longer():
    assert times(lowered("vgg16", "adam"), 8).seconds.sum() > times(lowered("vgg16", "sgd"), 8).seconds.sum()


def test_several_batch_sizes_at_once_give_what_each_gives_alone():
    graph = lowered("resnet50")
    together = times(graph, 4, 32, 64).seconds
    for row, batch_size in enumerate((4, 32, 64)):
        np.testing.assert_allclose(together[row], times(graph, batch_size).seconds[0])


def test_all_flop_of_a_resnet_are_covered():
    assert times(lowered("resnet50"), 32).is_covered.all()


def test_grouped_convolutions_are_not_covered_and_take_no_time():
    graph = lowered("mobilenet_v2")
    result = times(graph, 32)
    grouped = [
        op for op in range(graph.n_ops) if "convolution" in graph.name_of(op) and graph.attributes_of(op)["groups"] > 1
    ]
    assert len(grouped) == 34  # 17 depthwise convolutions, forward and backward
    assert sorted(grouped) == np.flatnonzero(~result.is_covered).tolist()
    assert (result.seconds[:, grouped] == 0).all()


def test_attention_is_not_covered_but_linear_layers_are():
    graph = lowered("gpt2")
    covered = {graph.name_of(op) for op in np.flatnonzero(times(graph, 1).is_covered)}
    uncovered = {graph.name_of(op) for op in np.flatnonzero(~times(graph, 1).is_covered)}
    assert {"aten.addmm", "aten.mm"} <= covered
    assert uncovered
    assert all("attention" in name or "bmm" in name for name in uncovered)


@pytest.mark.parametrize("device", ["V100-SXM2-16GB", "T4", "A100-SXM4-80GB"])
def test_far_outside_the_data_no_product_is_faster_than_the_peak(device):
    graph, device = lowered("gpt2"), find_device(device)
    result = times(graph, 8, device=device)
    is_layer = result.seconds[0] > 0
    flop = op_flop(graph, np.array([8]))[0]
    assert flop[is_layer].sum() / result.seconds.sum() <= device.peak_flop_per_s("fp32") * 1.000001
    assert any("roofline" in warning for warning in result.warnings)


def test_a_known_gpu_and_sizes_inside_the_data_give_no_warning():
    result = times(lowered("patchcamelyon_cnn", "adam"), 32)
    assert result.warnings == ()
    assert set(result.log_sd[result.log_sd > 0].tolist()) == {
        shipped_network(kind).provenance["log_sd"]["known_gpu"] for kind in KINDS
    }


def test_a_gpu_that_was_never_timed_widens_the_interval_and_says_so():
    graph = lowered("patchcamelyon_cnn")
    known, unseen = times(graph, 32), times(graph, 32, device=find_device("T4"))
    is_layer = known.log_sd > 0
    assert (unseen.log_sd[is_layer] > known.log_sd[is_layer]).all()
    assert "No layers were timed on T4" in unseen.warnings[0]


def test_more_memory_does_not_make_another_gpu():
    graph = lowered("resnet50")
    small, large = times(graph, 32), times(graph, 32, device=find_device("V100-SXM2-32GB"))
    np.testing.assert_array_equal(small.seconds, large.seconds)
    np.testing.assert_array_equal(small.log_sd, large.log_sd)


@pytest.mark.parametrize("precision", ["amp-fp16", "bf16"])
def test_precisions_that_nobody_timed_are_refused(precision):
    with pytest.raises(InputError, match=f"cannot predict {precision}"):
        times(lowered("resnet50"), 32, precision=precision)


def test_tf32_is_fp32_where_the_device_has_none():
    graph = lowered("resnet50")
    np.testing.assert_array_equal(times(graph, 32, precision="tf32").seconds, times(graph, 32).seconds)
    with pytest.raises(InputError, match="cannot predict tf32"):
        times(graph, 32, device=find_device("A100-SXM4-80GB"), precision="tf32")


def test_a_cpu_is_refused():
    with pytest.raises(InputError, match="GPUs"):
        times(lowered("resnet50"), 32, device=find_device("generic-cpu"))


@pytest.mark.parametrize(("field", "column"), [("n_sm", "n_sm"), ("boost_clock_hz", "boost_clock_mhz")])
def test_a_device_without_a_needed_figure_is_refused_by_its_name(field, column):
    with pytest.raises(InputError, match=f"needs {column} of 'V100-SXM2-16GB'"):
        times(lowered("resnet50"), 32, device=replace(V100, **{field: None}))


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("sgd", "SGD"),
        ("momentum", "Momentum"),
        ("nesterov", "Momentum"),
        ("adagrad", "Adagrad"),
        ("rmsprop", "RMSProp"),
        ("adam", "Adam"),
        ("adamw", "Adam"),
        ("adadelta", "Adadelta"),
    ],
)
def test_the_optimizer_is_told_by_its_ops(ours, theirs, target):
    assert OPTIMIZERS[graph_optimizer(lowered("mnist_cnn", ours, target))] == theirs


def test_a_step_without_an_optimizer_has_none():
    assert graph_optimizer(lowered("mnist_cnn", "none")) is None


def test_layers_of_a_graph_have_the_shapes_and_activations_of_the_model():
    graph = lowered("patchcamelyon_cnn")
    conv, dense = (layers.table(graph, np.array([8, 16])) for layers in find_layers(graph))
    assert conv.batch.tolist() == [8] * 6 + [16] * 6
    assert conv.input_size[:6].tolist() == conv.output_size[:6].tolist() == [96, 48, 24, 12, 6, 3]
    assert conv.channels_in[:6].tolist() == [3, 256, 256, 512, 512, 1024]
    assert conv.channels_out[:6].tolist() == [256, 256, 512, 512, 1024, 1024]
    assert set(conv.kernel) == {3.0}
    assert set(conv.stride) == set(conv.is_padded) == set(conv.has_bias) == {1.0}
    assert dense.dim_in[:4].tolist() == [1024, 1028, 512, 128]
    assert dense.dim_out[:4].tolist() == [1028, 512, 128, 1]
    assert [ACTIVATIONS[code] for code in dense.activation[:4]] == ["relu", "relu", "relu", "none"]


def test_flop_of_the_layers_are_those_of_the_graph():
    graph = lowered("inception_v3")  # has kernels of 1 x 7 and 7 x 1
    flop = op_flop(graph, np.array([4]))[0]
    for layers in find_layers(graph):
        np.testing.assert_allclose(layers.table(graph, np.array([4])).forward_flop, flop[layers.ops])


def test_a_forecast_of_resnet50_takes_well_under_ten_milliseconds():
    graph = lowered("resnet50")
    times(graph, 32)
    durations_s = []
    for _ in range(5):
        start_s = time.perf_counter()
        times(graph, 32)
        durations_s.append(time.perf_counter() - start_s)
    assert min(durations_s) < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_shipped_weights_say_where_they_come_from_and_how_good_they_are(kind):
    provenance = shipped_network(kind).provenance
    assert provenance["kind"] == kind
    assert "CDECatapult" in provenance["source"]
    assert set(provenance["n_rows"]) == set(provenance["unseen_gpu"]) == set(DEVICES)
    split = provenance["split"]
    assert sum(provenance["n_rows"].values()) == split["n_train"] + split["n_validation"] + split["n_test"]
    assert isinstance(split["seed"], int)
    assert provenance["test"]["n"] == split["n_test"]
    assert 0 < provenance["test"]["median_error_fraction"] < 0.1
    assert provenance["log_sd"]["known_gpu"] < provenance["log_sd"]["unseen_gpu"]


def test_the_numpy_network_predicts_what_scikit_learn_does():
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(0)
    features = rng.normal(loc=[3.0, -20.0, 0.5], scale=[1.0, 4.0, 0.1], size=(200, 3))
    target = features @ [0.5, 0.1, -2.0] + np.abs(features[:, 0])
    mean, scale = features.mean(axis=0), features.std(axis=0)
    model = MLPRegressor(hidden_layer_sizes=(7, 5), solver="lbfgs", max_iter=2_000, tol=1e-2, random_state=0)
    model.fit((features - mean) / scale, (target - 2.0) / 3.0)
    weights, biases = fold_scaling(model.coefs_, model.intercepts_, inputs=(mean, scale), target=(2.0, 3.0))
    network = tiny_network(weights, biases)
    expected = np.exp(model.predict((features - mean) / scale) * 3.0 + 2.0)
    np.testing.assert_allclose(network.predict_s(features), expected, rtol=1e-9)


def tiny_network(weights, biases):
    names = ("a", "b", "c")[: len(weights[0])]
    low, high = np.zeros(len(names)), np.ones(len(names))
    return Network(weights=weights, biases=biases, features=names, low=low, high=high, provenance={"kind": "tiny"})


def two_unit_network():
    weights = (np.array([[1.0, -1.0]]), np.array([[1.0], [2.0]]))
    return tiny_network(weights, (np.array([0.0, 0.0]), np.array([0.5])))


@pytest.mark.parametrize(("value", "log_s"), [(3.0, 3.5), (-3.0, 6.5), (0.0, 0.5)])
def test_a_network_of_two_units_gives_what_one_works_out_by_hand(value, log_s):
    assert np.log(two_unit_network().predict_s(np.array([[value]]))) == pytest.approx([log_s])


def test_the_distance_outside_is_the_largest_excess():
    network = tiny_network((np.zeros((3, 1)),), (np.zeros(1),))
    rows = np.array([[0.5, 0.0, 1.0], [1.5, -2.0, 0.0]])
    assert network.distance_outside(rows).tolist() == [0.0, 2.0]


def test_a_network_survives_its_file():
    written = network_bytes(two_unit_network())
    read = parse_network(written, where="here")
    assert read.predict_s(np.array([[3.0]])) == pytest.approx(two_unit_network().predict_s(np.array([[3.0]])))
    assert read.provenance == {"kind": "tiny"}
    assert network_bytes(read) == written


@pytest.mark.parametrize("content", [b"", b"not a zip", network_bytes(two_unit_network())[:200]])
def test_a_broken_network_file_is_refused(content):
    with pytest.raises(FileFormatError, match="Layer network here cannot be read"):
        parse_network(content, where="here")


def test_predicting_does_not_import_scikit_learn():
    use = "import sys; from traincast.kernels.layerwise.layerwise import shipped_network; shipped_network('conv')"
    subprocess.run([sys.executable, "-c", f"{use}; assert 'sklearn' not in sys.modules"], check=True)
