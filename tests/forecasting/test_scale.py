"""Many devices: both ways of scaling, their words, what travels, and a sweep that agrees with single forecasts."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.api.forecasts import scale_many
from traincast.errors import FileFormatError, InputError, UnknownDeviceError
from traincast.forecasting.scale_choices import choose_batches
from traincast.forecasting.scale_compare import compare
from traincast.forecasting.scale_places import find_places
from traincast.hardware.cluster_text import find_cluster
from traincast.report.json_ import to_json

V100 = "V100-SXM2-16GB"


@pytest.fixture(scope="module")
def resnet18():
    return tc.load_model("resnet18")


def scaled(model, on=V100, gpus=(1, 2, 4, 8), **options):
    return tc.scale(model, on, gpus, method="roofline", **{"batch_size": 256, **options})


def test_each_point_is_the_forecast_of_its_own(resnet18):
    answer = scaled(resnet18, batch_size_per_gpu=48)
    for n, strong, weak in zip((1, 2, 4, 8), answer.strong.points, answer.weak.points, strict=True):
        for point, batch in ((strong, 256), (weak, 48 * n)):
            alone = tc.forecast(resnet18, f"{n}x{V100}", batch, method="roofline")
            assert point.forecast.step_s == pytest.approx(alone.step_s, rel=1e-12)
            assert point.forecast.log_sd == pytest.approx(alone.log_sd, rel=1e-12)
            assert (point.n_devices, point.forecast.batch_size) == (n, batch)


def test_the_words_mean_what_they_should(resnet18):
    answer = scaled(resnet18, gpus=(4,), batch_size_per_gpu=32)
    one, (four,) = answer.strong.one, answer.strong.points
    ratio = one.step_s / four.forecast.step_s
    assert one.batch_size == four.forecast.batch_size == 256
    assert (four.speedup, four.efficiency_fraction) == pytest.approx((ratio, ratio / 4))
    assert four.serial_fraction == pytest.approx((1 / ratio - 1 / 4) / (1 - 1 / 4))
    one, (four,) = answer.weak.one, answer.weak.points
    assert (one.batch_size, four.forecast.batch_size) == (32, 128)
    assert four.speedup == pytest.approx(4 * one.step_s / four.forecast.step_s)


def test_one_device_gains_nothing_and_sends_nothing(resnet18):
    point = scaled(resnet18, gpus=(1,)).strong.points[0]
    assert (point.speedup, point.efficiency_fraction) == (1, 1)
    assert math.isnan(point.serial_fraction)
    assert (point.bytes_per_s, point.link, point.link_fraction) == (None, None, None)


def test_a_ring_sends_twice_the_gradient_less_one_share(resnet18):
    points = scaled(resnet18, algorithm="ring", strategy="mirrored").strong.points
    gradient_bytes = 4 * resnet18.n_parameters
    for point in points[1:]:
        n = point.n_devices
        assert point.forecast.bytes_sent == pytest.approx(2 * (n - 1) / n * gradient_bytes, rel=1e-3)
        assert point.bytes_per_s == pytest.approx(point.forecast.bytes_sent / point.forecast.communication_s)
        assert point.link_fraction == pytest.approx(point.bytes_per_s / 150e9)
        assert point.link_fraction < 0.8  # what large collectives reach of NVLink2


def test_a_tree_sends_the_whole_gradient_at_every_level(resnet18):
    tree, ring = (scaled(resnet18, algorithm=name, strategy="mirrored").strong.points[-1] for name in ("tree", "ring"))
    assert tree.forecast.bytes_sent == pytest.approx(3 * 4 * resnet18.n_parameters, rel=1e-3)
    assert tree.forecast.communication_s > 2 * ring.forecast.communication_s


def test_a_slower_link_slows_the_communication(resnet18):
    fast, slow = (scaled(resnet18, "T4", link=link).strong.points[-1] for link in (None, "PCIe3 x8"))
    assert slow.forecast.communication_s > 1.8 * fast.forecast.communication_s
    assert slow.link.name == "PCIe3 x8"


def test_between_nodes_their_link_counts(resnet18):
    answer = scaled(resnet18, "2x4xT4@10Gb/s", None)
    assert answer.places.counts == (1, 2, 4, 8)
    assert [point.link and point.link.name for point in answer.strong.points] == [None, *["PCIe3 x16"] * 2, "10 Gb/s"]
    inside, between = (point.forecast.communication_s for point in answer.strong.points[2:])
    assert between > 5 * inside


@pytest.mark.parametrize("strategy", ["ddp", "ps:2", "ps-async:2", "zero1", "zero2", "fsdp"])
@pytest.mark.parametrize("on", ["2x4xT4@10Gb/s", "3x2xV100-SXM2-16GB@InfiniBand EDR", "2xp3.16xlarge", "4x1xT4@6GB/s"])
def test_no_link_carries_more_than_it_can(resnet18, on, strategy):
    answer = scaled(resnet18, on, None, strategy=strategy)
    shares = [point.link_fraction for point in (*answer.strong.points, *answer.weak.points) if point.link_fraction]
    assert len(shares) >= 4
    assert all(0 < share <= 1 for share in shares)


def test_the_port_of_a_node_carries_the_gradient_once_for_two_nodes(resnet18):
    # Each of four devices reduces a quarter with its twin: of 2 x 1/2 the gradient, all four together send all of it.
    point = scaled(resnet18, "2x4xT4@10Gb/s", (8,), algorithm="hierarchical").strong.points[0]
    carried_bytes = point.link_fraction * point.link.bytes_per_s * point.forecast.communication_s
    assert carried_bytes == pytest.approx(4 * resnet18.n_parameters, rel=1e-3)


def test_a_reference_that_does_not_fit_is_timed_and_said():
    answer = tc.scale("resnet50", V100, (2, 8), batch_size=512, method="roofline")
    assert answer.strong.one.step_s > answer.strong.points[0].forecast.step_s
    assert any("Strong scaling, 1 GPU: Does not fit: needs" in text for text in answer.warnings)
    assert "Times of runs that do not fit are estimated as if they did." in answer.warnings
    assert not any(text.startswith("Weak") for text in answer.warnings)


def test_an_uneven_share_is_said(resnet18):
    answer = scaled(resnet18, gpus=(1, 3), batch_size=32)
    assert answer.strong.points[1].batch_size_per_device == 11
    assert any(
        text.startswith("Strong scaling, 3 GPUs: A batch of 32 does not divide evenly") for text in answer.warnings
    )


def test_cost_is_of_all_devices_or_of_whole_machines(resnet18):
    own = scaled(resnet18, n_samples=10_000, n_epochs=3, price_usd_per_hour=0.9).strong.points[2].forecast
    assert own.cost_usd == pytest.approx(4 * 0.9 * own.total_s / 3600)
    rented = scaled(resnet18, "p3.16xlarge", n_samples=10_000).strong.points[0].forecast
    assert rented.cost_usd == pytest.approx(24.48 * rented.total_s / 3600)
    assert scaled(resnet18).strong.one.cost_usd is None


def test_json_has_stable_keys(resnet18):
    data = json.loads(to_json(scaled(resnet18, n_samples=10_000).to_dict()))
    strong, weak = data["strong"]["points"][1], data["weak"]["points"][1]
    assert {"speedup", "amdahl_serial_fraction", "epoch_s", "bytes_per_s", "link_fraction", "fits"} <= set(strong)
    assert set(weak) - set(strong) == {"scaled_speedup", "gustafson_fraction"}
    assert (data["strong"]["batch_size"], data["weak"]["batch_size_per_device"]) == (256, 32)
    assert strong["intervals"]["epoch_s"][0] < strong["epoch_s"] < strong["intervals"]["epoch_s"][1]
    assert data["strong"]["points"][0]["amdahl_serial_fraction"] is None


def test_it_introduces_itself(resnet18):
    assert repr(scaled(resnet18)).startswith(f"Scaling('resnet18' on {V100}: batch 256 takes ")


@pytest.mark.parametrize(
    ("given_batches", "expected", "words"),
    [
        ((None, None), (256, 32), "No batch was given: weak scaling has 32 samples per GPU"),
        ((512, None), (512, 64), "Weak scaling has 64 samples per GPU"),
        ((None, 10), (80, 10), "Strong scaling has a global batch of 80"),
        ((100, None), (100, 13), "13 samples per GPU, a batch of 100 on 8 GPUs"),
        ((100, 10), (100, 10), ""),
    ],
)
def test_one_batch_follows_from_the_other(given_batches, expected, words):
    found = choose_batches(*given_batches, n_most=8)
    assert (found.of_all, found.of_each) == expected
    assert words in found.remark


@given(st.integers(1, 10_000), st.integers(1, 64), st.integers(1, 8))
def test_a_batch_per_device_can_be_shared_by_its_passes(of_all, n_most, n_passes):
    found = choose_batches(of_all, None, n_most=n_most, n_passes=n_passes)
    assert found.of_each % n_passes == 0
    assert n_most * found.of_each >= of_all


@pytest.mark.parametrize(
    ("on", "counts", "names"),
    [
        ("t4", None, ["1xT4", "2xT4", "4xT4", "8xT4"]),
        ("T4", [4, 2, 4], ["2xT4", "4xT4"]),
        ("p3.8xlarge", None, ["1 of p3.8xlarge", "2 of p3.8xlarge", "p3.8xlarge"]),
        ("2x3xT4@50Gb/s", None, ["1 of 2x3xT4@50Gb/s", "2 of", "4 of", "2x3xT4@50Gb/s"]),
        (find_cluster("4xT4"), [3], ["3 of 4xT4"]),
        ("3 of p3.8xlarge", None, ["1 of p3.8xlarge", "2 of p3.8xlarge", "3 of p3.8xlarge"]),
    ],
)
def test_where_n_devices_are(on, counts, names):
    places = find_places(on, counts)
    found = [places.by_count[n] for n in places.counts]
    assert all(cluster.name.startswith(name) for cluster, name in zip(found, names, strict=True))
    assert [cluster.n_devices for cluster in found] == list(places.counts)
    assert places.by_count[1].n_devices == 1


def test_more_devices_than_a_node_holds_are_nodes_of_eight_and_that_is_told():
    places = find_places("H100-SXM5-80GB", [8, 16, 64])
    assert [places.by_count[n].placement for n in (8, 16, 64)] == [(8,), (8, 8), (8,) * 8]
    assert len(places.warnings) == 1
    assert "'8x8xH100-SXM5-80GB@3200Gb/s'" in places.warnings[0]
    assert not find_places("H100-SXM5-80GB", [1, 8]).warnings


def test_parts_of_many_devices_fill_one_node_after_the_other():
    places = find_places("64xH100-SXM5-80GB", [4, 12, 64])
    assert [places.by_count[n].placement for n in (4, 12)] == [(4,), (8, 4)]
    assert len(places.warnings) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on": "4xT4"}, "'4xT4' holds 4 devices"),
        ({"on": "1xT4"}, "'1xT4' holds 1 device"),
        ({"on": "p3.17xlarge"}, "No device or machine named 'p3.17xlarge'. Close names: p3.16xlarge"),
        ({"gpus": ()}, "at least one number of devices"),
        ({"gpus": (2.5,)}, "gpus cannot be (2.5,): give a list of whole numbers"),
        ({"batch_size": 4}, "A batch of 4 leaves some of 8 devices without a sample"),
        ({"batch_size": 0}, "batch_size cannot be 0"),
        ({"accumulation_steps": 0}, "accumulation_steps cannot be 0"),
        ({"link": "0GB/s"}, "the rate of a link should be a number above 0"),
        ({"on": find_cluster("8xT4"), "link": "PCIe3 x8"}, "A Cluster has its links"),
        ({"price_usd_per_hour": 0.0}, "price_usd_per_hour cannot be 0.0"),
        ({"strategy": "fsdp", "algorithm": "ring"}, "the strategy 'fsdp' does not use one"),
        ({"strategy": "dp", "algorithm": "ring"}, "the strategy 'dp' does not use one"),
        ({"algorithm": "rign"}, "No algorithm named 'rign'. Close names: ring"),
        ({"on": "2x4xT4@50Gb/s", "algorithm": "tree"}, "'tree' works inside a single node only"),
        ({"on": "2x4xT4@50Gb/s", "strategy": "dp"}, "cannot span 2 nodes"),
    ],
)
def test_a_wrong_question_gets_one_sentence(resnet18, options, words):
    with pytest.raises((InputError, UnknownDeviceError)) as caught:
        scaled(resnet18, **options)
    assert words in str(caught.value)


def sweep(model, **options):
    settings = {"strategies": ("ddp", "mirrored", "ps:2", "fsdp"), "method": "roofline"}
    return scale_many(model, ["T4", V100], (1, 2, 8), [4, 12, 64], **settings | options)


def test_a_sweep_is_many_forecasts(resnet18):
    found = sweep(resnet18)
    assert found.step_s.shape == (2, 3, 4, 3)
    assert found.strategies == ("ddp", "mirrored", "ps:2", "fsdp")
    for place, n, strategy, batch in [(0, 1, 0, 1), (1, 2, 2, 2), (1, 1, 3, 0), (0, 2, 1, 1)]:
        on = f"{found.counts[n]}x{found.places[place]}"
        size = int(found.batch_sizes[batch])
        alone = tc.forecast(resnet18, on, size, strategy=found.strategies[strategy], method="roofline")
        assert found.step_s[place, n, strategy, batch] == pytest.approx(alone.step_s, rel=1e-12)
        assert found.communication_s[place, n, strategy, batch] == pytest.approx(alone.communication_s)
        assert found.log_sd[place, n, strategy, batch] == pytest.approx(alone.log_sd)


def test_what_cannot_be_shared_is_marked_and_nothing_else(resnet18):
    found = sweep(resnet18)
    assert np.array_equal(found.is_possible[:, 2, 0, :], [[False, True, True]] * 2)  # 4 samples on 8 devices
    assert found.is_possible[:, :2].all()
    assert np.array_equal(np.isnan(found.samples_per_s), ~found.is_possible)
    passes = sweep(resnet18, accumulation_steps=3)
    assert np.array_equal(passes.is_possible[0, 0, 0], [False, True, False])  # 3 passes share 12 only


def test_an_empty_sweep_is_refused(resnet18):
    with pytest.raises(InputError, match="at least one place, one strategy and one batch size"):
        sweep(resnet18, strategies=())


def written(tmp_path, text):
    file = tmp_path / "runs.csv"
    file.write_text(text)
    return file


def test_measured_runs_stand_beside_their_forecasts(resnet18, tmp_path):
    answer = scaled(resnet18, n_samples=1024, n_epochs=2, price_usd_per_hour=0.9)
    two = answer.strong.points[1].forecast
    # 4 steps an epoch, so 2 s are 0.5 s a step, and two epochs cost 4 s of two devices.
    found = compare(answer, written(tmp_path, "GPUs,Epoch time (s)\n2,2\n"), is_weak=False).by_count[2]
    assert found.step_s == pytest.approx(0.5)
    assert found.error_fraction == pytest.approx(two.step_s / 0.5 - 1)
    assert found.samples_per_s == pytest.approx(512)
    assert found.total_s == pytest.approx(4)
    assert found.cost_usd == pytest.approx(2 * 0.9 * 4 / 3600)


@pytest.mark.parametrize("row", ["step_s\n8,0.25", "epoch_s\n8,1", "total_s\n8,2", "samples/s\n8,1024"])
def test_any_way_to_write_a_time_will_do(resnet18, tmp_path, row):
    answer = scaled(resnet18, n_samples=1024, n_epochs=2)
    assert compare(answer, written(tmp_path, f"gpus,{row}\n"), is_weak=False).by_count[8].step_s == pytest.approx(0.25)


def test_the_batch_tells_which_scaling_was_measured(resnet18, tmp_path):
    answer = scaled(resnet18)
    strong = compare(answer, written(tmp_path, "gpus,batch,step_s\n1,256,1\n2,256,1\n"), is_weak=True)
    weak = compare(answer, written(tmp_path, "gpus,batch,step_s\n1,32,1\n8,256,1\n"), is_weak=False)
    assert (strong.curve.kind, weak.curve.kind) == ("strong", "weak")
    assert strong.to_dict()["mean_error_fraction"] > 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpus,epoch_s\n", "holds no measured runs"),
        ("gpus,epoch_s\n2,4\n", "epoch_s needs the number of samples"),
        ("gpus,step_s\n3,4\n", "line 2: a run on 3 GPUs is not among those asked about"),
        ("gpus,step_s\n2,4\n2,5\n", "line 3: 2 GPUs were there before"),
        ("gpus,step_s\n2,-4\n", "line 2: step_s should be above 0, not -4"),
        ("gpus,step_s\n2,four\n", "line 2: step_s is 'four', not a number"),
        ("gpus,step_s\n2.5,4\n", "line 2: gpus should be a whole number, not 2.5"),
        ("gpus,step_s\n2,4,5\n", "line 2: 3 cells where the header has 2"),
        (
            "gpus,minutes\n2,4\n",
            "one column should be step_s or epoch_s or total_s or samples_per_s, and there is none",
        ),
        ("cards,step_s\n2,4\n", "one column should be gpus, and there is none"),
        ("gpus,step_s,step time\n2,4,4\n", "line 1: two columns give step_s"),
        ("gpus,batch,step_s\n2,100,4\n", "line 2: a batch of 100 on 2 GPUs is in neither scaling"),
    ],
)
def test_a_wrong_file_is_said_with_its_line(resnet18, tmp_path, text, words):
    with pytest.raises((InputError, FileFormatError)) as caught:
        compare(scaled(resnet18), written(tmp_path, text), is_weak=False)
    assert words in str(caught.value)


@pytest.mark.parametrize("method", ["traincast", "roofline"])
def test_more_devices_never_lower_the_throughput_of_weak_scaling_in_a_node(resnet18, method):
    points = tc.scale(resnet18, V100, range(1, 9), batch_size_per_gpu=64, method=method).weak.points
    rates = [point.forecast.samples_per_s for point in points]
    assert rates == sorted(rates)
    assert all(0 < point.efficiency_fraction <= 1 for point in points)


def test_a_forecast_on_more_devices_than_a_node_holds_is_that_on_its_nodes_and_warns():
    many = tc.forecast("resnet18", "64xH100-SXM5-80GB", 1024)
    said = tc.forecast("resnet18", "8x8xH100-SXM5-80GB@8xInfiniBand-NDR", 1024)
    assert many.step_s == said.step_s
    assert any("read as 8 nodes of 8 devices" in warning for warning in many.warnings)
    assert not any("taken for" in warning for warning in said.warnings)
