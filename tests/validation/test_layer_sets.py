"""Layers timed alone as measured sets: which rows are taken, their hosts, and what each method is given."""

import gzip
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.accuracy.layer_page import layer_section
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import shipped
from traincast.kernels.host_fit import uniform_host
from traincast.kernels.layerwise.rows import layer_rows
from traincast.kernels.library_factors import no_factors, shipped_library
from traincast.kernels.library_method import LibraryMethod
from traincast.kernels.lone_layer import Layer, lone_layer_time
from traincast.kernels.refit.layer_hosts import call_seconds, fit_host, hosts_of
from traincast.kernels.refit.layer_rows import HOST_BATCH, N_SCORED, fit_sample, layer_of, sample
from traincast.validation import layer_blocks
from traincast.validation.layer_rows import LayerSet, check_layers, layer_name, window_of
from traincast.validation.layer_sets import NO_LIBRARY, measured_layer_set
from traincast.validation.splits import Split

CALL_S, DISPATCH_S = 2e-4, 1e-5
GPUS = {"P100": "P100-PCIe-16GB", "K40": "K40"}
SET = LayerSet(name="layers conv", kind="conv", devices=GPUS, file="conv.csv.gz")
HEADER = (
    "gpu,run,batch,input_size,kernel,channels_in,channels_out,stride,padding,bias,activation,optimizer,backward,"
    "median_s,min_s,max_s,std_s"
)


def typed(gpus=GPUS, batches=(1, 1, 1, 8, 32), sizes=(8, 56)):
    """Lines in the format of the files: every GPU forward and with Adam, small and large images."""
    return [
        f"{gpu},0,{batch},{size},3,{16 * (number + 1)},32,1,SAME,1,relu,{optimizer},{int(optimizer != 'none')},"
        "0.001,0.0009,0.0011,0.00002"
        for gpu in gpus
        for number, batch in enumerate(batches)
        for size in sizes
        for optimizer in ("none", "Adam")
    ]


def rows_of(lines):
    cells = zip(HEADER.split(","), zip(*(line.split(",") for line in lines), strict=True), strict=True)
    return layer_rows({name: np.array(column) for name, column in cells}, "conv")


def built(rows):
    made = layer_blocks.build(SET, rows)
    columns = layer_blocks._layerwise_columns(SET, rows, dict.fromkeys(GPUS))
    return replace(made, extra=made.extra | columns)


def library_s(layers, factors=None):
    """Seconds of the kernels with the libraries of the package."""
    chosen = factors or shipped_library().library.factors
    coefficients = shipped().coefficients
    launch_s = float(np.exp(coefficients["launch_s"]))
    return layers.with_library(layers.block.kernel_seconds(coefficients), chosen, launch_s=launch_s)


def as_predicted(layers):
    """The same calls, measured as we predict them on one host without their GPUs."""
    block, kernel_s = layers.block, np.zeros(len(layers.op))
    for device, library in shipped_library().without.items():
        own = (block.tags["device"] == device)[block.row]
        kernel_s[own] = library_s(layers, library.factors)[own]
    ones = np.ones(block.n_rows)
    seconds = call_seconds(layers.op_seconds(kernel_s), block.n_dispatched, CALL_S * ones, DISPATCH_S * ones)
    return replace(layers, block=replace(block, observed_s=seconds))


@pytest.fixture(scope="module")
def layers():
    return as_predicted(built(rows_of(typed())))


def test_many_calls_at_once_take_what_each_takes_alone():
    rows = rows_of(typed(gpus=["P100"]))
    made = layer_blocks.build(SET, rows)
    op_s = made.op_seconds(library_s(made))
    ones = np.ones(len(rows))
    together_s = call_seconds(op_s, made.block.n_dispatched, CALL_S * ones, DISPATCH_S * ones)
    host = uniform_host("session", call_s=CALL_S, dispatch_s=DISPATCH_S)
    for number, seconds in enumerate(together_s):
        layer, optimizer = layer_of(rows, number)
        batch, device = rows.layers.batch[[number]].astype(int), find_device("P100-PCIe-16GB")
        alone = lone_layer_time(layer, batch, optimizer=optimizer, device=device, host=host, method=LibraryMethod())
        assert seconds == pytest.approx(alone.seconds[0])


@given(call_us=st.integers(0, 500), n_halves=st.integers(1, 100))
def test_a_host_is_found_in_the_calls_that_it_made(call_us, n_halves):
    n_ops = np.array([3.0, 4.0, 20.0, 25.0] * 3)
    op_s = np.where(np.arange(25) < n_ops[:, None], 1e-7, 0.0)
    ones = np.ones(len(n_ops))
    measured_s = call_seconds(op_s, n_ops, call_us * 1e-6 * ones, n_halves * 0.5e-6 * ones)
    host = fit_host("one", op_s, n_ops, n_ops < 10, measured_s)
    assert host.call_s == pytest.approx(call_us * 1e-6, abs=1e-9)
    assert host.dispatch_s == pytest.approx(n_halves * 0.5e-6)


@given(call_s=st.floats(0, 1e-3), dispatch_s=st.floats(0, 1e-4), more=st.floats(0, 1e-3))
def test_more_work_on_either_timeline_never_shortens_a_call(call_s, dispatch_s, more):
    op_s, n_ops, ones = np.array([[1e-5, 2e-5, 0.0], [1e-5, 2e-5, 3e-5]]), np.array([2.0, 3.0]), np.ones(2)
    seconds = call_seconds(op_s, n_ops, call_s * ones, dispatch_s * ones)
    assert (seconds >= call_s + op_s.sum(axis=1) - 1e-12).all()
    assert (call_seconds(op_s + more, n_ops, call_s * ones, dispatch_s * ones) >= seconds - 1e-12).all()
    assert (call_seconds(op_s, n_ops, call_s * ones, (dispatch_s + more) * ones) >= seconds - 1e-12).all()


def test_the_rows_that_give_a_machine_its_host_are_not_scored(layers):
    for host in hosts_of(layers, library_s(layers)):
        assert (host.call_s, host.dispatch_s) == (pytest.approx(CALL_S, rel=0.1), pytest.approx(DISPATCH_S, rel=0.1))
    measured = measured_layer_set(layers, [], [])
    assert str(HOST_BATCH) not in measured.tags["batch"]
    assert set(measured.tags["part"]) == {"forward", "step"}
    assert measured.summary().median_absolute_fraction == pytest.approx(0.0, abs=0.02)
    assert measured.summary().coverage_fraction == 1.0


def test_a_gpu_of_other_sets_is_predicted_by_the_fit_without_it(layers):
    coefficients = shipped().coefficients
    slower = replace(coefficients, values={name: value - 0.2 for name, value in coefficients.values.items()})
    measured = measured_layer_set(layers, [Split("GPU", ("P100",)), Split("family", ("P100",))], [slower, slower])
    plain = measured_layer_set(layers, [], [])
    differs = measured.prediction().seconds != plain.prediction().seconds
    assert set(measured.tags["device"][differs]) == {"P100-PCIe-16GB"}


def test_a_gpu_is_predicted_by_the_library_factors_without_it(layers, monkeypatch):
    known = shipped_library()
    other = replace(known.library, factors=replace(known.library.factors, values=no_factors().values))
    without = {**known.without, "K40": other}
    before = measured_layer_set(layers, [], [])
    monkeypatch.setattr("traincast.validation.layer_sets.shipped_library", lambda: replace(known, without=without))
    after = measured_layer_set(layers, [], [])
    differs = after.prediction().seconds != before.prediction().seconds
    assert set(after.tags["device"][differs]) == {"K40"}
    shipped_fit = [each.prediction(left_out="row").seconds for each in (before, after)]
    same_host = after.tags["device"] != "K40"
    assert (shipped_fit[0] == shipped_fit[1])[same_host].all()


def test_our_older_self_is_shown_beside_the_factors(layers):
    measured = measured_layer_set(layers, [], [])
    assert measured.prediction(NO_LIBRARY).left_out == "GPU"
    assert (measured.prediction(NO_LIBRARY).seconds != measured.prediction().seconds).any()


def test_no_fitted_row_is_scored_or_shows_a_host_to_the_scored_ones():
    rows = rows_of(typed(batches=tuple(range(1, 600)), sizes=(8,)))
    scored, fitted = sample(rows), fit_sample(rows, 50)
    keys = [
        set(zip(each.gpu.tolist(), each.layers.batch.tolist(), each.layers.optimizer.tolist(), strict=True))
        for each in (scored, fitted)
    ]
    assert {batch for _, batch, _ in keys[0] & keys[1]} == {HOST_BATCH}
    for gpu in GPUS:
        assert ((scored.gpu == gpu) & (scored.layers.batch != HOST_BATCH)).sum() == N_SCORED
        assert ((fitted.gpu == gpu) & (fitted.layers.batch != HOST_BATCH)).sum() == 50


def test_a_network_that_saw_the_rows_is_no_baseline(layers):
    measured = measured_layer_set(layers, [], [])
    assert measured.prediction("layerwise").left_out == "GPU"
    seen = measured.prediction("layerwise", "nothing")
    perfect = replace(seen, seconds=measured.observed_s)
    others = tuple(each for each in measured.predictions if each is not seen)
    assert replace(measured, predictions=(*others, perfect)).best_baseline.method != "layerwise"


def test_every_simple_method_is_given_the_host(layers):
    measured = measured_layer_set(layers, [], [])
    for method in ("roofline", "scaled roofline", "flop + bytes", "paleo"):
        assert (measured.prediction(method).seconds >= measured.tags["call_s"]).all()


def test_without_a_fitted_network_there_is_no_answer_and_it_is_counted(layers):
    measured = measured_layer_set(layers, [], [])
    assert measured.summary(measured.prediction("layerwise")).n_unanswered == measured.n_rows
    assert "the networks were not fitted" in "\n".join(layer_section([measured]))


def test_a_sample_is_the_same_every_time_and_holds_both_kinds_of_rows():
    rows = rows_of(typed())
    first, second = (sample(rows, n_scored=3) for _ in range(2))
    assert first.layers.batch.tolist() == second.layers.batch.tolist()
    for gpu in GPUS:
        assert ((first.gpu == gpu) & (first.layers.batch != HOST_BATCH)).sum() == 3
        assert ((first.gpu == gpu) & (first.layers.batch == HOST_BATCH)).sum() == 12


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as stream:
        stream.write("\n".join([HEADER, *lines]) + "\n")


def test_blocks_are_built_once_and_again_when_rows_change(tmp_path, monkeypatch):
    path = tmp_path / "layers" / "conv.csv.gz"
    write(path, typed())
    n_built = []
    build = layer_blocks.build
    monkeypatch.setattr(layer_blocks, "build", lambda which, rows: n_built.append(len(rows)) or build(which, rows))

    def load():
        n_built.clear()
        found = layer_blocks._load(SET, path.parent, tmp_path, lambda kind: dict.fromkeys(GPUS))
        return found, max(n_built)

    first, n_first = load()
    second, n_second = load()
    assert (n_first, n_second) == (40, 2)
    assert second.op.tolist() == first.op.tolist()
    assert second.extra["paleo_scaled_s"].tolist() == first.extra["paleo_scaled_s"].tolist()
    assert second.block.tags["is_host"].tolist() == first.block.tags["is_host"].tolist()
    write(path, [line.replace("0.001,", "0.002,") for line in typed()])
    assert load()[1] == 40


def test_layers_that_are_not_there_are_named(tmp_path):
    with pytest.raises(InputError, match=r"lacks layers/conv_K40.csv.gz and 12 more files: --data is the folder"):
        check_layers(tmp_path)


def test_a_layer_has_a_name_that_tells_it_from_others():
    rows = rows_of(typed(gpus=["K40"], batches=(8,), sizes=(56,)))
    names = [layer_name(layer, "conv", optimizer) for layer, optimizer in map(partial(layer_of, rows), range(2))]
    assert names == [
        "conv 3 x 3, 16 to 32 channels, 56 x 56, forward",
        "conv 3 x 3, 16 to 32 channels, 56 x 56, adam",
    ]


@pytest.mark.parametrize(
    ("kernel", "size", "stride", "is_padded", "window"),
    [
        (1, 56, 1, False, "1 x 1"),
        (1, 1, 1, False, "whole image"),
        (3, 3, 2, False, "whole image"),
        (3, 3, 1, True, "2 x 2 to 4 x 4"),
        (3, 56, 2, True, "stride 2 and more"),
        (7, 56, 1, True, "5 x 5 and more"),
    ],
)
def test_convolutions_are_told_apart_by_their_window(kernel, size, stride, is_padded, window):
    layer = Layer(channels_in=4, channels_out=4, input_size=size, kernel=kernel, stride=stride, is_padded=is_padded)
    assert window_of(layer, "conv") == window
    assert window_of(layer, "dense") == "dense"


def test_the_page_shows_hosts_parts_and_who_is_better(layers):
    measured = measured_layer_set(layers, [], [])
    text = "\n\n".join(layer_section([measured]))
    assert "## Layers timed alone" in text
    assert "| layers conv | K40 | 200 | 10.0 |" in text
    assert "| layers conv | K40 | forward | 4 |" in text
    assert layer_section([replace(measured, name="gemm")]) == []
