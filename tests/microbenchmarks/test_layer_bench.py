"""Random layers: the same for the same seed, of the sizes they say, really timed."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from traincast.errors import InputError, MeasurementError, MemoryEndedError
from traincast.kernels.layerwise.layer_tables import ACTIVATIONS as KNOWN_ACTIVATIONS
from traincast.microbenchmarks import layer_bench
from traincast.microbenchmarks.layer_bench import layer_of, run_layer
from traincast.microbenchmarks.layer_tasks import ACTIVATIONS, layer_tasks, output_size, padding_of, work_of
from traincast.microbenchmarks.repeat import FEWEST, MOST, repeats
from traincast.trace.settings import OPTIMIZERS

torch.set_num_threads(1)

SMALL = {
    "dense": {"layer": "dense", "batch": 2, "dim_in": 3, "dim_out": 5, "activation": "relu", "optimizer": "adam"},
    "conv": {
        "layer": "conv", "batch": 2, "input_size": 7, "kernel": 3, "channels_in": 3, "stride": 2, "padding": "SAME",
        "channels_out": 4, "bias": 1, "activation": "tanh", "optimizer": "momentum",
    },
    "pool": {
        "layer": "pool", "batch": 2, "input_size": 8, "kernel": 2, "channels_in": 3, "stride": 2, "padding": "VALID",
        "pooling": "max", "optimizer": "none",
    },
    "lstm": {"layer": "lstm", "batch": 2, "seqlen": 3, "dim_in": 4, "dim_out": 5, "optimizer": "sgd"},
}  # fmt: skip


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(layer_bench, "repeats", lambda: range(3))


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_more_rows_of_a_seed_begin_with_the_fewer_and_none_comes_twice(seed, n):
    fewer, more = layer_tasks(n, seed), layer_tasks(n + 10, seed)
    assert more[:n] == fewer
    assert len({task.key for task in more}) == n + 10


def test_the_rows_of_a_seed_are_the_same_on_every_machine():
    assert layer_tasks(1, 0)[0].settings == {
        "layer": "dense", "batch": 108, "dim_in": 104, "dim_out": 192, "activation": "tanh", "optimizer": "rmsprop",
        "device": "cpu",
    }  # fmt: skip


def test_two_seeds_draw_different_rows_and_every_kind_of_layer_is_among_them():
    first, second = ({task.key for task in layer_tasks(100, seed)} for seed in (1, 2))
    assert not first & second
    kinds = [task.settings["layer"] for task in layer_tasks(100)]
    assert {kind: kinds.count(kind) for kind in kinds} == {"dense": 25, "conv": 25, "pool": 25, "lstm": 25}


def test_a_cpu_is_spared_what_would_take_it_seconds():
    works = [work_of(task.settings) for task in layer_tasks(400)]
    assert max(flop for flop, _ in works) <= 5e9
    assert max(moved_bytes for _, moved_bytes in works) <= 256e6
    assert max(work_of(task.settings)[0] for task in layer_tasks(400, device="cuda")) > 5e9


def test_choices_have_the_names_that_others_know():
    settings = [task.settings for task in layer_tasks(200)]
    assert {each["activation"] for each in settings if "activation" in each} == set(ACTIVATIONS)
    assert set(ACTIVATIONS) <= set(KNOWN_ACTIVATIONS)
    assert {each["optimizer"] for each in settings} <= set(OPTIMIZERS)


def test_no_rows_are_no_benchmark():
    with pytest.raises(InputError, match="at least one row, not 0"):
        layer_tasks(0)


DRAWN = [dict(task.settings, batch=1) for task in layer_tasks(100, 3)]
SMALL_IMAGES = [each for each in DRAWN if each["layer"] in ("conv", "pool") and work_of(each)[0] < 1e8]


@pytest.mark.parametrize("settings", SMALL_IMAGES, ids=lambda settings: settings["layer"])
def test_drawn_layers_give_images_of_the_side_that_their_padding_says(settings):
    runnable = layer_of(settings)
    output = runnable.forward(runnable.module, runnable.make_inputs(1))
    assert output.shape[-2:] == (output_size(settings), output_size(settings))


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 4))
def test_same_padding_gives_the_side_over_the_stride(side, kernel, stride):
    assume(kernel % 2 or stride > 1)  # never drawn: it cannot be padded evenly
    layer = {"input_size": max(side, kernel), "kernel": kernel, "stride": stride, "padding": "SAME"}
    convolved = torch.nn.functional.conv2d(
        torch.zeros(1, 1, layer["input_size"], 1), torch.zeros(1, 1, kernel, 1), stride=(stride, 1),
        padding=(padding_of(layer), 0),
    )  # fmt: skip
    assert convolved.shape[2] == -(-layer["input_size"] // stride) == output_size(layer)


def test_work_of_small_layers_by_hand():
    assert work_of(SMALL["dense"]) == (2 * 2 * 3 * 5, 4 * (6 + 10 + 15))
    assert work_of(SMALL["conv"]) == (2 * 2 * 16 * 27 * 4, 4 * (2 * 49 * 3 + 27 * 4 + 2 * 16 * 4))
    assert work_of(SMALL["pool"]) == (0, 4 * 3 * (2 * 64 + 2 * 16))
    assert work_of(SMALL["lstm"]) == (2 * 2 * 3 * 4 * 5 * 9, 4 * (2 * 3 * 9 + 4 * 5 * 9))


@pytest.mark.parametrize("kind", SMALL)
def test_a_layer_is_timed_forward_backward_and_as_a_step(kind, few_steps):
    values = run_layer(SMALL[kind])
    phases = ("forward_s", "loss_s", "backward_s", "optimizer_s")
    assert values["n_steps"] == 3
    assert all(0 < values[f"min_{name}"] <= values[name] <= values[f"max_{name}"] for name in (*phases, "step_s"))
    assert values["min_step_s"] >= sum(values[f"min_{name}"] for name in phases)
    assert (values["flop"], values["bytes"]) == work_of(SMALL[kind])


def test_the_gradient_of_the_input_is_part_of_backward():
    gradients = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(context, inputs):
            return inputs.clone()

        @staticmethod
        def backward(context, gradient):
            gradients.append(gradient.shape)
            return gradient

    runnable = layer_of(SMALL["dense"])
    inputs = runnable.make_inputs(2)
    runnable.loss(runnable.forward(lambda given: runnable.module(Watched.apply(given)), inputs), inputs).backward()
    assert gradients == [(2, 3)]
    assert inputs.grad is None


def test_a_layer_that_needs_more_memory_than_there_is_gives_one_sentence(few_steps):
    huge = dict(SMALL["dense"], dim_in=2**24, dim_out=2**24)
    with pytest.raises(MemoryEndedError, match=r"A dense layer on 'cpu' ran out of memory"):
        run_layer(huge)


def test_a_layer_that_torch_refuses_gives_one_sentence(few_steps):
    with pytest.raises(MeasurementError, match="A pool layer on 'cpu' failed"):
        run_layer(dict(SMALL["pool"], input_size=1))


def test_an_unknown_layer_is_named_beside_those_there_are(few_steps):
    with pytest.raises(InputError, match=r"no layer 'attention' to time\. Choose from: dense, conv, pool, lstm"):
        run_layer(dict(SMALL["dense"], layer="attention"))


def count(step_s):
    """Repetitions of something that takes so long, by a clock that only it moves."""
    now_s = [0.0]
    n = 0
    for _ in repeats(lambda: now_s[0]):
        now_s[0] += step_s
        n += 1
    return n


def test_short_steps_are_repeated_often_and_long_ones_a_few_times():
    assert count(1e-6) == MOST
    assert count(0.01) == 16
    assert count(0.1) == FEWEST
    assert count(100.0) == 3
