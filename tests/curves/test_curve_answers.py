"""What a curve answers hangs together: values, intervals, steps to a target and chances are of the same curves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import InputError

METRICS = ("loss", "accuracy", "reward")
_SHAPES = ("power", "exponential", "noise", "rising", "cliff")


def _values(shape, share, noise):
    """Over shares of the run, by what a run may look like; `noise` are standard normal numbers."""
    laws = {
        "power": 1.0 + 2.0 * (share + 1e-3) ** -0.3,
        "exponential": 0.3 + 3.0 * np.exp(-5.0 * share),
        "noise": np.exp(noise),
        "rising": 1.0 + share,
        "cliff": np.where(share < 0.3, 2.0, 0.5),
    }
    return laws[shape] * np.exp(0.02 * noise)


@st.composite
def fitted(draw, families=("auto", "optimus")):
    """A curve of any family, metric and shape, with the end to which it is asked and how it was fitted."""
    n, length = draw(st.sampled_from([4, 7, 30, 200])), draw(st.sampled_from([10.0, 3_000.0, 1e6]))
    begin, seen = draw(st.sampled_from([0.0, 0.001, 0.4])), draw(st.floats(0.1, 1.0))
    share = np.linspace(begin * seen, seen, n)
    noise = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(n)
    losses = _values(draw(st.sampled_from(_SHAPES)), share, noise)
    metric, family = draw(st.sampled_from(METRICS)), draw(st.sampled_from(families))
    values = {"loss": losses, "reward": -losses, "accuracy": 1.0 - 0.95 * losses / losses.max()}[metric]
    rates = draw(st.sampled_from([None, "constant", "linear", "cosine"])) if family == "auto" else None
    known = {"family": family, "total_steps": length, "learning_rate": rates, "metric": metric}
    return tc.fit_curve(share * length, values, **known), share * length, values, known


@given(fitted())
@settings(max_examples=60, deadline=None)
def test_the_median_lies_in_the_interval_and_both_are_numbers(run):
    curve, _, values, _ = run
    places = np.linspace(0.0, curve.total_steps, 12)
    low, high = curve.interval(places)
    middle = curve.predict(places)
    slack = 1e-9 * np.abs(values).max()
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low <= middle + slack).all()
    assert (middle <= high + slack).all()


@given(fitted())
@settings(max_examples=60, deadline=None)
def test_an_accuracy_is_a_share_whatever_law_it_follows(run):
    curve, _, _, known = run
    if known["metric"] == "accuracy":
        low, high = curve.interval(np.linspace(0.0, 10.0 * curve.total_steps, 12))
        assert low.min() >= 0.0
        assert high.max() <= 1.0


@given(fitted(), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_the_step_to_a_target_is_the_one_by_which_half_of_the_curves_are_there(run, place):
    curve, _, _, _ = run
    low, high = curve.interval(np.linspace(curve.first_step, curve.total_steps, 9))
    target = float(low.min() + place * (high.max() - low.min()))
    first, middle, last = curve.interval_to(target)[0], curve.steps_to(target), curve.interval_to(target)[1]
    assert first <= middle <= last
    probability = curve.probability_of(target)
    for step, level in ((first, 0.1), (middle, 0.5), (last, 0.9)):
        if np.isfinite(step):
            assert curve.probability_of(target, step * (1 + 1e-9)) >= level - 0.01
        else:
            assert probability <= level + 0.01


@given(fitted(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_a_harder_target_takes_longer_and_is_less_likely(run, one, other):
    curve, _, values, _ = run
    easy, hard = sorted((values.min() + share * np.ptp(values) for share in (one, other)), reverse=not curve.is_rising)
    assert curve.steps_to(hard) >= curve.steps_to(easy) * (1 - 1e-9)
    assert curve.probability_of(hard) <= curve.probability_of(easy)
    assert curve.probability_of(easy, 0.5 * curve.total_steps) <= curve.probability_of(easy)


@given(fitted(), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows_and_rows_without_a_value_do_not_matter(run, seed):
    curve, steps, values, known = run
    order = np.random.default_rng(seed).permutation(len(steps))
    rows = np.r_[steps[order], np.nan, 0.5 * steps[-1]], np.r_[values[order], 1.0, np.nan]
    other = tc.fit_curve(*rows, **known)
    places = np.linspace(steps[0], curve.total_steps, 7)
    assert other.predict(places) == pytest.approx(curve.predict(places), rel=1e-6)


@given(fitted(families=("auto",)))
@settings(max_examples=60, deadline=None)
def test_so_far_a_curve_is_within_what_was_logged(run):
    """Power laws have no end at step 0, and early values are of another law than late ones: neither is a forecast."""
    curve, steps, values, _ = run
    places = np.linspace(0.0, steps[-1], 20)
    middle = curve.predict(places)
    margin = 0.1 * np.abs(values).max() + 0.1 * np.ptp(values)
    if curve.is_rising:
        assert middle.min() >= values.min() - margin
    else:
        assert middle.max() <= values.max() + margin


def test_the_forecast_of_step_0_is_not_infinite():
    steps = np.arange(0, 1_000.0)
    curve = tc.fit_curve(steps, 2.0 * (steps + 1) ** -0.3 + 1.0, total_steps=2_000, learning_rate="constant")
    assert curve.predict(0) == pytest.approx(3.0, rel=0.05)
    assert curve.interval(0)[1] < 3.2


def test_a_step_by_which_nobody_can_tell_is_refused():
    curve = tc.fit_curve(np.arange(1, 50), np.arange(1, 50) ** -0.5)
    with pytest.raises(InputError, match="A step should be a number, not nan"):
        curve.probability_of(0.1, float("nan"))


def test_percent_that_rise_are_no_losses_without_a_word():
    steps = np.arange(1.0, 31.0)
    percent = 100.0 * (1.0 - 0.5 * steps**-0.3)
    assert "use metric='accuracy' otherwise" in " ".join(tc.fit_curve(steps, percent).warnings)
    assert "says otherwise" not in " ".join(tc.fit_curve(steps, percent, metric="accuracy").warnings)


@pytest.mark.parametrize("unit", [1e-9, 0.1, 1e5, 1e12])
@pytest.mark.parametrize("rates", [{"family": "optimus"}, {"learning_rate": "constant"}], ids=["optimus", "auto"])
def test_the_unit_of_losses_does_not_matter_where_no_other_runs_are_asked(unit, rates):
    """How far a curve drops with its rate is told by other runs, whose losses have a size."""
    steps = np.linspace(1.0, 1_000.0, 60)
    losses = _values("power", steps / 1_000.0, np.random.default_rng(0).standard_normal(60))
    plain, other = (tc.fit_curve(steps, one, metric="loss", **rates) for one in (losses, unit * losses))
    assert other.predict(3_000) == pytest.approx(unit * plain.predict(3_000), rel=1e-6)
    assert other.interval(3_000) == pytest.approx(tuple(unit * one for one in plain.interval(3_000)), rel=1e-6)
