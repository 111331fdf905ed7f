"""What TensorFlow's libraries do differently: factors on the kernels of a layer timed alone, and how they are found."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from lab.refit.layers import refit
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.coefficients import shipped
from traincast.kernels.layerwise.rows import layer_rows
from traincast.kernels.library_factors import (
    NAMES,
    PRIORS,
    SPREAD_GROUPS,
    Chip,
    Factors,
    library_seconds,
    no_factors,
    shipped_library,
)
from traincast.kernels.library_method import LibraryMethod
from traincast.kernels.library_traits import Role, traits_of
from traincast.kernels.lone_layer import Layer, lone_layer_graph, lone_layer_time
from traincast.kernels.predictor import Traincast
from traincast.kernels.refit.layer_calls import build_calls
from traincast.kernels.refit.layer_fit import Missed, Timed, call_log_sd, fit_factors, missed, spread_of
from traincast.kernels.refit.layer_hosts import call_seconds
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

P100, K40, K80 = (find_device(name) for name in ("P100-PCIe-16GB", "K40", "K80-die"))
CONVOLUTION = Layer(channels_in=16, channels_out=64, input_size=28, kernel=5, is_padded=True)
DENSE = Layer(channels_in=2000, channels_out=1000)
BATCHES = np.array([2, 32])
GPUS = {"P100": "P100-PCIe-16GB", "K40": "K40", "K80": "K80-die"}
KNOWN = Factors({**PRIORS, "filter": 1.0, "layout": 0.4, "update": 0.3, "kepler.products": 0.8, "large_window": -0.4})


def seconds_of(layer, optimizer, device, factors):
    graph = lone_layer_graph(layer, optimizer)
    return LibraryMethod(factors=factors).op_times(graph, device, BATCHES, precision="fp32").seconds


def role_of(layer, optimizer="sgd"):
    return traits_of(lone_layer_graph(layer, optimizer)).role


def changed(name, by=0.5):
    return Factors({**no_factors().values, name: by})


@pytest.mark.parametrize("layer", [CONVOLUTION, DENSE])
def test_without_differences_the_times_are_those_of_the_default_method(layer):
    graph = lone_layer_graph(layer, "sgd")
    plain = Traincast().op_times(graph, P100, BATCHES, precision="fp32").seconds
    assert seconds_of(layer, "sgd", P100, no_factors()) == pytest.approx(plain)


@pytest.mark.parametrize(
    ("name", "role", "device"),
    [
        ("convolution_input", {Role.INPUT}, P100),
        ("convolution_weight", {Role.WEIGHT}, P100),
        ("layout", {Role.LAYOUT}, P100),
        ("layout.few_channels", {Role.LAYOUT}, P100),
        ("filter", {Role.FILTER}, P100),
        ("update", {Role.UPDATE}, P100),
        ("large_window", {Role.FORWARD, Role.INPUT, Role.WEIGHT}, P100),
        ("kepler.products", {Role.FORWARD, Role.INPUT, Role.WEIGHT}, K80),
        ("kepler.products", set(), P100),
        ("convolution_weight.strided", set(), P100),
    ],
)
def test_a_factor_changes_the_kernels_that_it_is_about(name, role, device):
    before = seconds_of(CONVOLUTION, "sgd", device, no_factors())
    after = seconds_of(CONVOLUTION, "sgd", device, changed(name))
    assert set(role_of(CONVOLUTION)[(after > before).any(axis=0)].tolist()) == role


def test_a_factor_of_two_doubles_all_but_the_launch():
    launch_s = float(np.exp(shipped().coefficients["launch_s"]))
    before, after = (seconds_of(DENSE, "sgd", P100, each) for each in (no_factors(), changed("update", np.log(2))))
    own = role_of(DENSE) == Role.UPDATE
    assert after[:, own] - launch_s == pytest.approx(2 * (before[:, own] - launch_s))


def test_a_gradient_takes_at_most_as_many_forward_times_as_is_said():
    launch_s = float(np.exp(shipped().coefficients["launch_s"]))
    seconds = seconds_of(CONVOLUTION, "sgd", P100, changed("weight_over_forward", np.log(0.01))) - launch_s
    role = role_of(CONVOLUTION)
    assert seconds[:, role == Role.WEIGHT] == pytest.approx(0.01 * seconds[:, role == Role.FORWARD], rel=1e-3)


def test_updates_pass_over_memory_as_often_as_their_functors():
    launch_s = float(np.exp(shipped().coefficients["launch_s"]))
    graph = lone_layer_graph(DENSE, "adam")
    own = traits_of(graph).role == Role.UPDATE
    plain = Traincast().op_times(graph, P100, BATCHES, precision="fp32").seconds[:, own] - launch_s
    assert seconds_of(DENSE, "adam", P100, no_factors())[:, own] - launch_s == pytest.approx(plain * 10 / 7)


def test_a_k40_runs_at_its_base_clock():
    before = Traincast().op_times(lone_layer_graph(DENSE, None), K40, BATCHES, precision="fp32").seconds
    launch_s = float(np.exp(shipped().coefficients["launch_s"]))
    after = seconds_of(DENSE, None, K40, no_factors())
    ratio = (after - launch_s) / (before - launch_s)
    assert ratio[:, 0] == pytest.approx([875 / 745] * 2)
    assert ratio[:, 1:] == pytest.approx(np.ones_like(ratio[:, 1:]))


@given(more=st.floats(0, 1e-2), place=st.integers(0, 19), batch=st.integers(1, 64))
def test_a_kernel_that_takes_longer_never_shortens_another(more, place, batch):
    graph = lone_layer_graph(CONVOLUTION, "adam")
    traits, factors = traits_of(graph), shipped_library().library.factors
    seconds = Traincast().op_times(graph, P100, np.array([batch]), precision="fp32").seconds
    slower = seconds.copy()
    slower[:, place] += more
    first, second = (library_seconds(each, traits, Chip.of(P100), factors, launch_s=3e-6) for each in (seconds, slower))
    assert (second >= first * (1 - 1e-12)).all()


@given(batch=st.integers(1, 63), channels=st.integers(1, 200))
def test_more_work_never_takes_less_time(batch, channels):
    layer = Layer(channels_in=8, channels_out=channels, input_size=30, kernel=3, stride=2)
    host = find_host("tf1-session")
    times = lone_layer_time(
        layer, np.array([batch, batch + 1]), optimizer="adam", device=P100, host=host, method=LibraryMethod()
    ).seconds
    assert times[1] >= times[0] * (1 - 1e-9)


def test_factors_are_for_one_layer_and_not_for_models():
    graph = lower(tc.load_model("mnist_cnn_2conv"), target="cuda", settings=Settings("fp32", "none"))
    with pytest.raises(InputError, match="one layer timed alone; this graph has 2 convolutions"):
        LibraryMethod().op_times(graph, P100, BATCHES, precision="fp32")


def rows_like(kind, gpus, seed=0, n_rows=60):
    """Random layers in the columns of the files, one of three of batch 1."""
    random = np.random.default_rng(seed)
    cells = {"batch": random.integers(8, 48, n_rows), "bias": np.ones(n_rows, int)}
    cells["batch"][::3] = 1
    is_deep = random.random(n_rows) < 0.5  # small images of many channels, or the other way round
    few, many, small, large = (random.integers(*each, n_rows) for each in ((2, 80), (200, 800), (7, 15), (40, 200)))
    cells |= {
        "input_size": np.where(is_deep, small, large), "kernel": random.integers(1, 8, n_rows),
        "channels_in": np.where(is_deep, many, few), "channels_out": np.where(is_deep, many[::-1], few[::-1]),
        "stride": random.integers(1, 4, n_rows), "padding": random.choice(["SAME", "VALID"], n_rows),
        "activation": np.full(n_rows, "relu"), "optimizer": random.choice(["none", "Adam", "SGD"], n_rows),
        "gpu": random.choice(list(gpus), n_rows),
    }  # fmt: skip
    text = {name: np.asarray(values).astype(str) for name, values in cells.items()}
    return layer_rows(text | dict.fromkeys(("median_s", "min_s", "max_s", "std_s"), np.full(n_rows, "0.001")), kind)


def timed_as(factors, seed=0, n_rows=240):
    """Calls that took exactly what these factors say, on hosts of 200 us a call and 10 us a dispatch."""
    calls = build_calls(rows_like("conv", GPUS, seed, n_rows), GPUS, name="layers conv")
    timed = Timed.of(calls, shipped().coefficients)
    ones = np.ones(calls.block.n_rows)
    op_s = calls.op_seconds(timed.device_s(factors))
    seconds = call_seconds(op_s, calls.n_ops, 2e-4 * ones, 1e-5 * ones)
    return replace(timed, calls=replace(calls, block=replace(calls.block, observed_s=seconds)))


@pytest.fixture(scope="module")
def timed():
    return timed_as(KNOWN)


@pytest.fixture(scope="module")
def fitted(timed):
    return fit_factors([timed], n_rounds=3)


def test_known_factors_are_found_in_the_calls_that_they_made(timed, fitted):
    for name in ("filter", "layout", "update", "kepler.products", "large_window"):
        assert fitted[name] == pytest.approx(KNOWN[name], abs=0.15), name
    assert np.median(np.abs(missed(timed, fitted).errors)) < 0.02


def test_what_no_row_speaks_about_stays_at_its_prior(fitted):
    assert fitted["maxwell.products"] == pytest.approx(PRIORS["maxwell.products"], abs=1e-6)


def test_a_fit_without_a_gpu_does_not_see_its_rows(timed, fitted):
    block = timed.calls.block
    own = block.tags["device"] == "K40"
    spoiled = replace(block, observed_s=np.where(own, 100.0, block.observed_s))
    other = replace(timed, calls=replace(timed.calls, block=spoiled))
    found = [fit_factors([each], left_out=["K40"], start=fitted) for each in (timed, other)]
    assert found[0].values == found[1].values


def test_the_stored_contents_name_rows_and_hold_a_fit_without_each_gpu():
    result = refit([timed_as(KNOWN, seed=1, n_rows=90)])
    assert set(result["without"]) == set(result["provenance"]["devices"]) == set(GPUS.values())
    assert set(result["values"]) == set(NAMES)
    assert set(result["log_sd"]) == set(SPREAD_GROUPS)
    assert result["provenance"]["rows"] == {"layers conv": 60}


def test_deviations_hold_eight_of_ten_errors():
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(4), 2000)
    spread = np.array([0.3, 0.2, 0.1, 0.1])
    errors = (shares * random.normal(0, spread, shares.shape)).sum(axis=1)
    found = spread_of(Missed(errors, shares, np.full(2000, "P100")))
    assert found == pytest.approx(spread, abs=0.05)
    inside = np.abs(errors) <= 1.2816 * call_log_sd(shares, found)
    assert inside.mean() == pytest.approx(0.8, abs=0.005)


def test_what_ships_says_where_it_comes_from():
    known = shipped_library()
    assert known.provenance["refit"] == "python -m lab.refit.layers --data DIR --write"
    assert known.provenance["rows"] == {"layers conv": 4200, "layers dense": 2400}
    assert set(known.without) == set(known.provenance["devices"])
    assert all(np.isfinite(each.log_sd).all() for each in (known.library, *known.without.values()))
    assert len(NAMES) <= 15
