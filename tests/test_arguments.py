"""Whatever is passed to the public functions: an answer, or one sentence that names the argument."""

import contextlib
import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.api.explaining import explain
from traincast.api.forecasts import forecast_many, forecasts
from traincast.errors import InputError
from traincast.options.types import as_annotated

INPUTS = Path(__file__).parent / "goldens" / "inputs"
STEPS = np.arange(10.0, 401.0, 10.0)
CALLS = {
    tc.fit_curve: {"steps": STEPS, "losses": 1 + 4 * STEPS**-0.5},
    tc.converge: {"log": INPUTS / "accuracy.csv", "target": 0.5},
    tc.read_log: {"path": INPUTS / "accuracy.csv"},
    tc.transfer: {"runs": INPUTS / "sizes.csv", "size": 26, "total_steps": 9000},
    tc.forecast: {"model": "mnist_cnn", "on": "T4", "batch_size": 8},
    tc.scale: {"model": "mnist_cnn", "on": "T4", "gpus": [1, 2]},
    tc.estimate_memory: {"model": "mnist_cnn", "batch_size": 8},
    tc.plan: {"model": "mnist_cnn", "n_samples": 1000, "provider": "aws", "max_gpus": 1, "max_nodes": 1},
    forecasts: {"model": "mnist_cnn", "on": ["T4"], "batch_sizes": [8]},
    explain: {"model": "mnist_cnn", "on": "T4", "batch_size": 8},
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["32", "24h", "", "x\0y", "here"]),
    st.binary(max_size=3),
    st.lists(st.one_of(st.integers(-2, 9), st.text(max_size=3), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    st.sampled_from([np.int64(-1), np.float32("nan"), np.array([1.5]), np.bool_(True), object(), int]),
)


@st.composite
def odd_calls(draw):
    function = draw(st.sampled_from(list(CALLS)))
    named = [name for name, each in inspect.signature(function).parameters.items() if each.kind != each.VAR_KEYWORD]
    return function, CALLS[function] | {draw(st.sampled_from(named)): draw(ODD)}


@settings(max_examples=150, deadline=None)
@given(odd_calls())
def test_an_odd_argument_is_answered_or_refused_in_words_and_nothing_else(call):
    function, arguments = call
    if arguments.get("measured") == "here":
        return  # that would train
    with contextlib.suppress(tc.TraincastError):
        function(**arguments)


@pytest.mark.parametrize(
    ("function", "wrong", "told"),
    [
        (tc.forecast, {"on": None}, "on cannot be None: give text or a Cluster."),
        (tc.forecast, {"precision": 3}, "precision cannot be 3: give text or None."),
        (tc.forecast, {"batch_size": "32"}, "batch_size cannot be '32': give a whole number."),
        (tc.forecast, {"batch_size": True}, "batch_size cannot be True: give a whole number."),
        (tc.forecast, {"price_usd_per_hour": float("nan")}, "price_usd_per_hour cannot be nan: give a number or None."),
        (tc.forecast, {"compiled": 1}, "compiled cannot be 1: give True or False."),
        (tc.forecast, {"n_samples": 10**400}, "n_samples cannot be 1000"),
        (tc.plan, {"deadline_s": "24h"}, "deadline_s cannot be '24h': give a number or None."),
        (tc.plan, {"batch_sizes": [8, "x"]}, "batch_sizes cannot be [8, 'x']: give a list of whole numbers"),
        (tc.scale, {"gpus": 4}, "gpus cannot be 4: give a list of whole numbers or None."),
        (tc.converge, {"split": STEPS}, "split cannot be array([ 10.,"),
        (tc.converge, {"like": np.array(1.5)}, "like cannot be array(1.5): give a list of logs or texts or paths."),
        (tc.fit_curve, {"like": STEPS}, "...: give a list of pairs."),
        (tc.fit_curve, {"family": "optimos"}, "family 'optimos' is not known. Close names: optimus."),
        (tc.read_log, {"on_progress": 5}, "on_progress cannot be 5: give a function or None."),
        (tc.read_log, {"columns": {"step": 3}}, "columns cannot be {'step': 3}: give a dictionary or None."),
        (tc.transfer, {"size": 26.5}, "size cannot be 26.5: give a whole number."),
        (tc.estimate_memory, {"devices": "mine.toml"}, "give that, too."),
    ],
)
def test_the_sentence_names_the_argument_and_what_would_be_right(function, wrong, told):
    with pytest.raises(InputError) as refused:
        function(**CALLS[function] | wrong)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["precision", "optimizer", "host"])
def test_empty_text_is_not_taken_for_the_default(name):
    with pytest.raises(InputError):
        tc.forecast("mnist_cnn", "T4", 8, **{name: ""})


def test_numbers_of_numpy_are_numbers():
    given = {"n_samples": np.int32(100), "price_usd_per_hour": np.float32(0.5), "compiled": np.bool_(False)}
    found = tc.forecast("mnist_cnn", "T4", np.int64(8), **given)
    plain = tc.forecast("mnist_cnn", "T4", 8, n_samples=100, price_usd_per_hour=0.5)
    assert found.to_dict() == plain.to_dict()
    assert type(found.question.n_samples) is int
    several = forecast_many("mnist_cnn", ("T4",), np.array([8, 16]))
    assert [each.batch_size for each in several.forecasts()] == [8, 16]


def test_a_list_may_hold_what_its_annotation_says():
    assert as_annotated("x", (1, np.int8(2)), "Sequence[int | str] | None") == [1, 2]
    assert as_annotated("x", None, "Sequence[int | str] | None") is None
    with pytest.raises(InputError, match="a list of whole numbers or texts"):
        as_annotated("x", [1.5], "Sequence[int | str] | None")


def test_a_pair_is_two_values_in_whatever_holds_them():
    pairs = "Sequence[tuple[ArrayLike, int]]"
    assert as_annotated("x", [[STEPS, 1], (None, np.int8(2))], pairs) == [(STEPS, 1), (None, 2)]
    for wrong in ([(STEPS, 1, 2)], [("a", "b")], ["ab"], [np.array(1.0)]):
        with pytest.raises(InputError, match="give a list of pairs"):
            as_annotated("x", wrong, pairs)


def test_the_only_value_of_an_array_is_a_number():
    assert as_annotated("x", np.array(1.5), "float | None") == 1.5
    assert as_annotated("x", np.array(3), "int") == 3
    for wrong in (np.array("a"), np.array(True), np.array([1.5])):
        with pytest.raises(InputError, match="give a number"):
            as_annotated("x", wrong, "float")


@pytest.mark.parametrize(
    ("text", "told"),
    [("x" * 5000, "give at most 4,096 letters."), ("a\0b", "give text without null characters and lone surrogates.")],
)
def test_text_that_no_file_can_hold_is_told_as_such(text, told):
    with pytest.raises(InputError, match=told):
        as_annotated("x", text, "str | None")
