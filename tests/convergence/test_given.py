"""Python calls with what cannot be meant are told in a sentence, as on the command line."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError

STEPS = np.arange(10.0, 1001.0, 10.0)
LOSSES = 1.0 + 4.0 * (STEPS / 10.0) ** -0.5
NAN = float("nan")


@pytest.fixture(scope="module")
def curve():
    return tc.fit_curve(STEPS, LOSSES)


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "log.csv"
    rows = "".join(f"{step:g},{loss:.5f}\n" for step, loss in zip(STEPS, LOSSES, strict=True))
    file.write_text(f"step,loss\n{rows}")
    return file


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "runs.csv"
    rows = "".join(f"net{depth},{depth},{0.001 * depth},{1 + depth / 100},0.1\n" for depth in (8, 14, 20, 32, 56))
    file.write_text(f"model,depth,b0,b1,b2\n{rows}")
    return file


@pytest.mark.parametrize(
    ("steps", "values", "words"),
    [
        (None, LOSSES, "The steps of a curve should be a list of numbers, not None"),
        (["a"] * 100, LOSSES, "The steps of a curve should be numbers, not"),
        (STEPS, None, "The values of a curve should be a list of numbers, not None"),
        (STEPS, [[1, 2], [3]], "The values of a curve should be numbers"),
        (STEPS, [1j] * len(STEPS), "The values of a curve should be numbers"),
    ],
)
def test_a_curve_is_of_numbers(steps, values, words):
    with pytest.raises(InputError, match=words):
        tc.fit_curve(steps, values)


def test_tensors_with_a_gradient_or_a_type_that_numpy_lacks_are_numbers_too():
    torch = pytest.importorskip("torch")
    plain = tc.fit_curve(STEPS, LOSSES).predict(1_000)
    with_gradient = torch.tensor(LOSSES, requires_grad=True)
    for losses in (with_gradient, list(with_gradient), (loss for loss in LOSSES)):
        assert tc.fit_curve(torch.tensor(STEPS), losses).predict(1_000) == pytest.approx(plain)
    assert tc.fit_curve(STEPS, with_gradient.bfloat16()).predict(1_000) == pytest.approx(plain, rel=0.1)
    curve = tc.fit_curve((step for step in STEPS), LOSSES, learning_rate="constant")
    assert curve.steps_to(torch.tensor(0.5)) == curve.steps_to(0.5)


def test_one_learning_rate_may_be_any_kind_of_number():
    torch = pytest.importorskip("torch")
    plain = tc.fit_curve(STEPS, LOSSES, learning_rate=0.5).predict(1_000)
    for rate in (np.float32(0.5), np.array(0.5), torch.tensor(0.5), 1):
        assert tc.fit_curve(STEPS, LOSSES, learning_rate=rate).predict(1_000) == plain


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": None}, "A family should be a word, not None"),
        ({"total_steps": "x"}, "total_steps should be a number, not 'x'"),
        ({"total_steps": 10**400}, "total_steps is too large"),
        ({"metric": 3}, "A metric should be a word, not 3"),
        ({"learning_rate": object()}, "learning_rate should be numbers"),
        ({"learning_rate": True}, "learning_rate should be a number, not True"),
        ({"learning_rate": {-5: 1, -3: 0.1}}, "steps of learning_rate are finite and not below 0"),
        ({"learning_rate": {float("nan"): 1}}, "steps of learning_rate are finite and not below 0"),
        ({"learning_rate": {"a": 1}}, "A step of learning_rate should be a number, not 'a'"),
        ({"learning_rate": lambda step: None}, "learning_rate at step 0 should be a number, not None"),
        ({"like": "ab"}, "like should be a list, not 'ab'"),
        ({"like": [1]}, "A run in like should be a list, not 1"),
        ({"like": [(STEPS,)]}, "should be its steps and its values, and it has 1 part"),
    ],
)
def test_options_of_a_curve_are_what_they_should_be(options, words):
    with pytest.raises(InputError, match=words):
        tc.fit_curve(STEPS, LOSSES, **options)


def test_a_curve_is_asked_about_numbers(curve):
    with pytest.raises(InputError, match="A step should be numbers, not"):
        curve.predict("a")
    with pytest.raises(InputError, match="A target should be a number, not None"):
        curve.steps_to(None)
    with pytest.raises(InputError, match="A step should be a number, not 'a'"):
        curve.probability_of(1.5, "a")


def test_the_only_value_of_an_array_is_a_number(curve):
    assert curve.steps_to(np.array(1.5)) == curve.steps_to(1.5)
    as_array = tc.fit_curve(STEPS, LOSSES, learning_rate=lambda step: np.array(0.1))
    assert as_array.predict(2000) == tc.fit_curve(STEPS, LOSSES, learning_rate=lambda step: 0.1).predict(2000)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (None, "A log should be the path of a file, not None"),
        (b"x", "A log should be the path of a file, not b'x'"),
        ("", "it is empty"),
        ("a\0b", "cannot be read"),
        ("a" * 5000, "cannot be read"),
    ],
)
def test_a_log_has_a_path(path, words):
    for read in (tc.read_log, tc.converge):
        with pytest.raises(InputError, match=words):
            read(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": 3}, "A format should be a word"),
        ({"pattern": 3}, "A pattern should be a word"),
        ({"run": 3}, "A run should be a word"),
        ({"columns": ["a"]}, "columns= should map what is meant to a column's name"),
        ({"columns": {"step": 3}}, "columns= should map what is meant to a column's name"),
        ({"steps_per_epoch": "x"}, "steps_per_epoch should be a number, not 'x'"),
    ],
)
def test_a_log_is_read_as_somebody_says(log, options, words):
    with pytest.raises(InputError, match=words):
        tc.read_log(log, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": 3}, "A metric should be a word"),
        ({"target": [1]}, "A target should be a number"),
        ({"total_steps": "a"}, "The total number of steps should be a number"),
        ({"n_epochs": "a"}, "The number of epochs should be a number"),
        ({"step": "x"}, "The time of a step should be a number"),
        ({"usd_per_hour": "x"}, "A price should be a number"),
        ({"total_steps": 1e300}, r"The total number of steps should be at most 1e\+15, not 1e\+300"),
        ({"step": 1e200}, "The time of a step should be at most"),
        ({"usd_per_hour": 1e300}, "A price should be from 0 to"),
        ({"n_epochs": 1e10, "reading": {"steps_per_epoch": 1e10}}, "The length of the run in steps should be at most"),
        ({"like": "other.csv"}, "The logs of other runs should be a list, not 'other.csv'"),
        ({"like": None}, "The logs of other runs should be a list, not None"),
        ({"like": [3]}, "A log should be the path of a file, not 3"),
        ({"reading": "x"}, "reading= should have options of read_log"),
        ({"reading": {"colums": {}}}, "reading= should have options of read_log"),
    ],
)
def test_a_run_is_asked_about_what_can_be_meant(log, options, words):
    with pytest.raises(InputError, match=words):
        tc.converge(log, **options)


def test_a_metric_is_found_by_a_word(log):
    with pytest.raises(InputError, match="A metric should be a word, not None"):
        tc.read_log(log).find(None)


@pytest.mark.parametrize("size", [NAN, None, "50", 50.5, True, -3, 10**300])
def test_a_size_is_a_whole_number(table, size):
    with pytest.raises(InputError, match=r"The size that is asked for should be a (whole )?number") as told:
        tc.transfer(table, size, total_steps=1000)
    assert len(str(told.value)) < 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": None}, "by should be a word"),
        ({"family": 3}, "family should be a word"),
        ({"split": "tain"}, "There is no split 'tain'"),
        ({"total_steps": NAN}, "total_steps should be above 0, not nan"),
        ({"n_epochs": -1}, "n_epochs should be above 0, not -1"),
        ({"target": "x"}, "A target should be a number"),
        ({"total_steps": 1000, "n_epochs": 9, "steps_per_epoch": 10}, "9 epochs of 10 steps .* contradict each other"),
    ],
)
def test_a_transfer_is_asked_about_what_can_be_meant(table, options, words):
    with pytest.raises(InputError, match=words):
        tc.transfer(table, 50, **{"total_steps": 1000, **options})


def test_a_depth_has_many_names(table):
    found = [tc.transfer(table, 50, by=by, total_steps=1000).predicted for by in ("depth", "num_layers", "Layers")]
    assert len({(one.size_name, one.curve.predict(1000)) for one in found}) == 1
    with pytest.raises(tc.TraincastError, match=r"there is no width; a row needs model, depth .* it has model, depth"):
        tc.transfer(table, 50, by="width", total_steps=1000)
