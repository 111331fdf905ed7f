"""What `fit_optimus` answers: parameters, forecasts with intervals, and a word where the fit means nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from traincast.curves.curve import Curve
from traincast.curves.optimus import fit_optimus
from traincast.curves.optimus_members import OptimusMembers, effective_points
from traincast.errors import InputError

STEPS = 391.0 * np.arange(1, 351)


def law(k, b0, b1, b2):
    return 1.0 / (b0 * k + b1) + b2


def noisy_curve(seed: int = 0, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    return STEPS, law(STEPS, 2e-4, 0.5, 0.03) * np.random.default_rng(seed).normal(1.0, noise, len(STEPS))


def members_of(curve: Curve) -> OptimusMembers:
    assert isinstance(curve.members, OptimusMembers)
    return curve.members


def test_a_clean_log_is_continued_exactly_and_without_a_warning():
    curve = fit_optimus(STEPS, law(STEPS, 2e-4, 0.5, 0.03))
    assert curve.parameters == pytest.approx({"b0": 2e-4, "b1": 0.5, "b2": 0.03}, rel=1e-5)
    assert curve.predict(500_000) == pytest.approx(law(500_000, 2e-4, 0.5, 0.03), rel=1e-4)
    assert curve.warnings == ()
    assert curve.family == "optimus"


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(1.0, 2e6))
def test_the_interval_holds_the_forecast(seed, step):
    curve = fit_optimus(*noisy_curve(seed))
    low, high = curve.interval(step)
    assert low <= curve.predict(step) <= high


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(1_000, 400_000))
def test_the_step_to_a_target_is_where_the_forecast_meets_it(seed, step):
    curve = fit_optimus(*noisy_curve(seed))
    assert curve.steps_to(float(curve.predict(step))) == pytest.approx(step, rel=0.01)


def test_eight_of_ten_intervals_hold_the_true_curve():
    """Independent noise: p10-p90 about the true loss far beyond the log."""
    truth = law(500_000, 2e-4, 0.5, 0.03)
    held = 0
    for seed in range(200):
        low, high = fit_optimus(*noisy_curve(seed)).interval(500_000)
        held += low <= truth <= high
    assert 0.7 <= held / 200 <= 0.9


def test_the_covariance_is_scipys_where_the_noise_is_independent():
    steps, losses = noisy_curve(1)
    _, theirs = curve_fit(law, steps, losses, p0=(2e-4, 0.5, 0.01), bounds=(0, np.inf))
    members = members_of(fit_optimus(steps, losses))
    ours = members.covariance * (members.n_effective - 3) / (len(steps) - 3)
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_noise_that_persists_counts_for_fewer_points_and_widens_the_interval():
    rng = np.random.default_rng(0)
    fresh = rng.normal(size=4000)
    kept = np.empty(4000)
    kept[0] = fresh[0]
    for place in range(1, 4000):
        kept[place] = 0.9 * kept[place - 1] + np.sqrt(1 - 0.81) * fresh[place]
    assert effective_points(fresh) > 2000
    assert effective_points(kept) == pytest.approx(4000 / 19, rel=0.6)
    steps = np.arange(1.0, 4001.0)
    clean = law(steps, 5e-3, 0.5, 0.1)
    widths = []
    for noise in (fresh, kept):
        low, high = fit_optimus(steps, clean + 0.02 * noise).interval(8000)
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


def test_the_same_log_gives_the_same_curve():
    first, second = fit_optimus(*noisy_curve()), fit_optimus(*noisy_curve())
    np.testing.assert_array_equal(members_of(first).b0, members_of(second).b0)


def test_members_never_fall_below_zero():
    members = members_of(fit_optimus(STEPS, law(STEPS, 2e-4, 0.5, 0.0) * noisy_curve()[1]))
    for column in (members.b0, members.b1, members.b2):
        assert (column >= 0).all()


def test_spikes_do_not_move_the_curve_and_are_mentioned():
    steps, losses = noisy_curve(noise=0.01)
    spiked = losses.copy()
    spiked[[50, 120, 300]] += 4.0
    curve = fit_optimus(steps, spiked)
    assert curve.parameters == pytest.approx(fit_optimus(steps, losses).parameters, rel=0.02)
    assert curve.warnings == ("3 of 350 points lie far from their neighbours and were left out.",)


def test_points_that_are_not_numbers_are_left_out_with_a_warning():
    steps, losses = noisy_curve()
    broken = np.concatenate((losses, [np.nan, np.inf]))
    curve = fit_optimus(np.concatenate((steps, [1.0, 2.0])), broken)
    assert curve.parameters == pytest.approx(fit_optimus(steps, losses).parameters, rel=1e-6)
    assert curve.warnings[0] == "2 of 352 points are not finite and were left out."


@pytest.mark.parametrize("losses", [[], [1.0], [3.0, 2.0, 1.0], [1.0, 2.0, np.nan, 3.0, np.inf]])
def test_fewer_than_four_finite_points_are_refused(losses):
    n_finite = int(np.isfinite(losses).sum())
    with pytest.raises(InputError, match=f"at least 4 finite points, but there are {n_finite}"):
        fit_optimus(range(len(losses)), losses)


def test_steps_and_losses_of_different_length_are_refused():
    with pytest.raises(InputError, match="as many steps as values, but there are 5 and 4"):
        fit_optimus(range(5), [4.0, 3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (np.full(50, 0.5), "The losses do not fall: b0 is at its bound, 0"),
        (np.linspace(0.3, 0.9, 50), "The losses do not fall: b0 is at its bound, 0"),
        (np.concatenate(([5.0], np.full(49, 1.0))), "b1 is at its bound of 0"),
        (np.concatenate(([5.0, 1.1], np.full(48, 1.0))), "b1 is at its bound of 0"),
        (1.0 / np.arange(1, 51), "b1 is at its bound of 0"),
        (-np.ones(50), "The losses are not above 0 on average"),
        (np.zeros(50), "The losses are not above 0 on average"),
    ],
)
def test_a_degenerate_fit_predicts_and_says_what_is_degenerate(losses, words):
    curve = fit_optimus(np.arange(1, 51), losses)
    assert any(warning.startswith(words) for warning in curve.warnings)
    assert np.isfinite(curve.predict(100))


def test_a_floor_at_its_bound_is_said_and_doubles_the_interval():
    curve = fit_optimus(STEPS, law(STEPS, 2e-4, 0.5, 0.0) * np.random.default_rng(2).normal(1.0, 0.05, 350) - 0.01)
    assert curve.parameters["b2"] == 0.0
    assert "b2 is at its bound of 0: the fitted curve keeps falling towards 0." in curve.warnings


def test_a_fall_before_the_first_points_is_named_and_leaves_a_wide_interval():
    """As of validation losses that overfit: b0 in the thousands."""
    curve = fit_optimus(np.arange(50), np.concatenate(([5.0], np.ones(49))))
    assert curve.parameters["b0"] > 1000
    assert any("rests on the first 3 logged steps alone" in warning for warning in curve.warnings)
    low, high = curve.interval(100)
    assert high - low > 0.1


def test_a_fall_that_drowns_in_noise_is_named():
    found = [
        fit_optimus(np.arange(1, 101), 1 - 1e-4 * np.arange(100) + 0.1 * np.random.default_rng(seed).normal(size=100))
        for seed in range(20)
    ]
    for curve in found:
        low, high = curve.interval(200)
        assert curve.warnings
        assert high - low > 0.05
    assert any("is smaller than the noise" in warning for curve in found for warning in curve.warnings)


def test_two_places_cannot_tell_three_parameters_apart():
    curve = fit_optimus([1, 1 + 1e-9, 1 + 2e-9, 2, 2 + 1e-9, 2 + 2e-9], [3.0, 3.1, 2.9, 1.0, 1.1, 0.9])
    assert any("covariance is singular" in warning or "at its bound" in warning for warning in curve.warnings)
    assert curve.predict(1) == pytest.approx(3.0, abs=0.7)


def test_two_different_steps_are_two_points():
    with pytest.raises(InputError, match="at least 4 finite points, but there are 2"):
        fit_optimus([1, 1, 1, 2, 2, 2], [3.0, 3.1, 2.9, 1.0, 1.1, 0.9])


numbers = st.floats(-1e38, 1e38)  # further out, no loss is taken


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e15) | st.integers(0, 1000), numbers | st.floats(0, 10)),
        min_size=4,
        max_size=40,
        unique_by=lambda point: float(point[0]),
    )
)
def test_any_four_points_give_a_forecast(points):
    steps, losses = zip(*points, strict=True)
    curve = fit_optimus(steps, losses)
    low, high = curve.interval(curve.last_step)
    assert low <= curve.predict(curve.last_step) <= high
    assert all(np.isfinite(value) and value >= 0 for value in curve.parameters.values())


def test_the_end_of_the_run_is_kept():
    assert fit_optimus(*noisy_curve(), total_steps=200_000).total_steps == 200_000
