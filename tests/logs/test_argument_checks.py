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
        ({"family": None}, "family cannot be None: give text"),
        ({"total_steps": "x"}, "total_steps cannot be 'x': give a number"),
        ({"total_steps": 10**400}, "total_steps cannot be 1000"),
        ({"metric": 3}, "metric cannot be 3: give text"),
        ({"learning_rate": object()}, "learning_rate should be numbers"),
        ({"learning_rate": True}, "learning_rate should be a number, not True"),
        ({"learning_rate": {-5: 1, -3: 0.1}}, "steps of learning_rate should be finite and not below 0"),
        ({"learning_rate": {float("nan"): 1}}, "steps of learning_rate should be finite and not below 0"),
        ({"learning_rate": {"a": 1}}, "A step of learning_rate should be a number, not 'a'"),
        ({"learning_rate": lambda step: None}, "learning_rate at step 0 should be a number, not None"),
        ({"like": "ab"}, "like cannot be 'ab': give a list of pairs"),
        ({"like": [1]}, "like cannot be .*1.*: give a list of pairs"),
        ({"like": [(STEPS,)]}, "like cannot be .*: give a list of pairs"),
        ({"like": STEPS}, "like cannot be array.*: give a list of pairs"),
        ({"like": np.array(1.0)}, "like cannot be array.*: give a list of pairs"),
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
        (None, "(path|log) cannot be None: give"),
        (b"x", "(path|log) cannot be b'x': give"),
        ("", "it is empty"),
        ("a\0b", "(path|log) cannot be .*: give text without null characters"),
        ("a" * 5000, "(path|log) cannot be .*: give at most 4,096 letters"),
        ("a" * 300, "cannot be read: File name too long"),
    ],
)
def test_a_log_has_a_path(path, words):
    for read in (tc.read_log, tc.converge):
        with pytest.raises(InputError, match=words):
            read(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": 3}, "format cannot be 3: give text or None"),
        ({"pattern": 3}, "pattern cannot be 3: give text or None"),
        ({"on_progress": 5}, "on_progress cannot be 5: give a function or None"),
        ({"run": 3}, "run cannot be 3: give text or None"),
        ({"columns": ["a"]}, "columns cannot be .*: give a dictionary or None"),
        ({"columns": {"step": 3}}, "columns cannot be .*: give a dictionary or None"),
        ({"steps_per_epoch": "x"}, "steps_per_epoch cannot be 'x': give a number"),
    ],
)
def test_a_log_is_read_as_somebody_says(log, options, words):
    with pytest.raises(InputError, match=words):
        tc.read_log(log, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": 3}, "metric cannot be 3: give text or None"),
        ({"target": [1]}, "target cannot be .*: give a number or None"),
        ({"split": STEPS}, "split cannot be array.*: give text or None"),
        ({"split": "dev"}, "split 'dev' is not known. Choose from: train, validation, test"),
        ({"total_steps": "a"}, "total_steps cannot be 'a': give a number"),
        ({"n_epochs": "a"}, "n_epochs cannot be 'a': give a number"),
        ({"step": "x"}, "step cannot be 'x': give a Forecast or a number or None"),
        ({"usd_per_hour": "x"}, "usd_per_hour cannot be 'x': give a number"),
        ({"total_steps": 1e300}, r"total_steps cannot be 1e\+300: give a number from 1e-30"),
        ({"step": 1e200}, "step cannot be 1e\\+200: give a number from 1e-30"),
        ({"usd_per_hour": 1e300}, r"usd_per_hour cannot be 1e\+300: give a number from 1e-30"),
        ({"n_epochs": 1e10, "reading": {"steps_per_epoch": 1e10}}, "The length of the run in steps should be at most"),
        ({"like": "other.csv"}, "like cannot be 'other.csv': give a list"),
        ({"like": None}, "like cannot be None: give a list"),
        ({"like": [3]}, r"like cannot be \[3\]: give a list of logs or texts or paths"),
        ({"reading": "x"}, "reading cannot be 'x': give a dictionary"),
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
    with pytest.raises(InputError, match=r"size cannot be .*: give (a whole number|a smaller number)") as told:
        tc.transfer(table, size, total_steps=1000)
    assert len(str(told.value)) < 130


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": None}, "by cannot be None: give text"),
        ({"family": 3}, "family cannot be 3: give text or None"),
        ({"split": "tain"}, "split 'tain' is not known. Close names: train"),
        ({"total_steps": NAN}, "total_steps cannot be nan: give a number"),
        ({"n_epochs": -1}, "n_epochs cannot be -1: give a number above 0"),
        ({"target": "x"}, "target cannot be 'x': give a number"),
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
