"""The plain least-squares fit of the Optimus law: exact, global, the same as SciPy's bounded one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from traincast.curves.optimus_lines import Floats
from traincast.curves.optimus_solver import OptimusFit, least_squares

EPOCHS = 391.0 * np.arange(1, 351)


def law(k: Floats, b0: float, b1: float, b2: float) -> Floats:
    return 1.0 / (b0 * k + b1) + b2


def squared_error(steps: Floats, losses: Floats, b0: float, b1: float, b2: float) -> float:
    return float(np.sum((law(steps, b0, b1, b2) - losses) ** 2))


def values(fit: OptimusFit) -> tuple[float, float, float]:
    return fit.b0, fit.b1, fit.b2


@settings(deadline=None, max_examples=60)
@given(st.floats(-3, 4), st.floats(0.2, 5.0), st.floats(0.0, 2.0), st.floats(0.1, 1e6), st.integers(8, 400))
def test_a_curve_without_noise_gives_its_parameters_back(log_fall, b1, b2, last_step, n_points):
    steps = np.linspace(0.0, last_step, n_points)
    b0 = 10**log_fall * b1 / last_step
    losses = law(steps, b0, b1, b2)
    fit = least_squares(steps, losses)
    np.testing.assert_allclose(law(steps, *values(fit)), losses, rtol=1e-7)
    if -1 < log_fall < 1.5:  # a nearly straight or nearly vertical curve hides its parameters in the last digits
        assert values(fit) == pytest.approx((b0, b1, b2), rel=1e-4, abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 3.0, 1e6]), st.sampled_from([0.1, 10.0, 1e4]))
def test_units_of_loss_and_step_change_the_parameters_and_nothing_else(seed, loss_unit, step_unit):
    noise = np.random.default_rng(seed).normal(1.0, 0.05, len(EPOCHS))
    losses = law(EPOCHS, 2e-4, 0.5, 0.03) * noise
    b0, b1, b2 = values(least_squares(EPOCHS, losses))
    other = least_squares(EPOCHS * step_unit, losses * loss_unit)
    assert other.b0 * loss_unit * step_unit == pytest.approx(b0, rel=1e-6)
    assert other.b1 * loss_unit == pytest.approx(b1, rel=1e-6)
    assert other.b2 / loss_unit == pytest.approx(b2, rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.floats(1e-4, 3e-4), st.floats(0.4, 0.7), st.floats(0.0, 0.04), st.floats(0.001, 0.2))
def test_noisy_logs_give_the_parameters_of_scipys_bounded_fit(seed, b0, b1, b2, noise):
    """350 epochs of 391 steps, as of a residual network on CIFAR-10."""
    losses = law(EPOCHS, b0, b1, b2) * np.random.default_rng(seed).normal(1.0, noise, len(EPOCHS))
    theirs, _ = curve_fit(law, EPOCHS, losses, p0=(2e-4, 0.5, 0.01), bounds=(0, np.inf), xtol=1e-12, ftol=1e-12)
    ours = values(least_squares(EPOCHS, losses))
    assert squared_error(EPOCHS, losses, *ours) <= squared_error(EPOCHS, losses, *theirs) * (1 + 1e-9)
    assert ours == pytest.approx(tuple(theirs), rel=1e-4, abs=2e-5)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(0.0, 2.0), st.floats(0.01, 1.0))
def test_no_start_of_scipy_finds_a_better_curve(seed, log_fall, b2, noise):
    """Noisy, nearly flat, all in the first steps: whatever the valley, ours is the deepest."""
    rng = np.random.default_rng(seed)
    steps = np.arange(1.0, 61.0)
    losses = law(steps, 10**log_fall / 60, 1.0, b2) + noise * rng.normal(size=60)
    ours = squared_error(steps, losses, *values(least_squares(steps, losses)))
    for start in ((1.0, 1.0, 1.0), (0.01, 1.0, 0.1), (10.0, 0.1, 1.0)):
        try:
            theirs, _ = curve_fit(law, steps, losses, p0=start, bounds=(0, np.inf))
        except RuntimeError:  # it ran out of evaluations
            continue
        assert ours <= squared_error(steps, losses, *theirs) * (1 + 1e-6)


def test_every_point_counts_also_where_bins_give_the_start():
    rng = np.random.default_rng(3)
    steps = np.arange(1.0, 40_001.0)
    losses = law(steps, 2e-4, 0.5, 0.02) * rng.normal(1.0, 0.1, len(steps))
    theirs, _ = curve_fit(law, steps, losses, p0=(2e-4, 0.5, 0.01), bounds=(0, np.inf))
    assert values(least_squares(steps, losses)) == pytest.approx(tuple(theirs), rel=1e-4)


def test_a_floor_below_zero_is_no_floor():
    steps = np.arange(1.0, 101.0)
    fit = least_squares(steps, law(steps, 0.01, 0.5, -0.2))
    assert fit.b2 == 0.0
    assert fit.b0 > 0.0


def test_rising_losses_give_their_mean():
    steps = np.arange(11.0)
    fit = least_squares(steps, np.linspace(1.0, 3.0, 11))
    assert values(fit) == pytest.approx((0.0, 0.5, 0.0))


def test_the_order_of_the_points_does_not_matter():
    steps = np.arange(1.0, 301.0)
    losses = law(steps, 0.05, 0.4, 0.1) * np.random.default_rng(0).normal(1.0, 0.05, 300)
    shuffled = np.random.default_rng(1).permutation(300)
    assert values(least_squares(steps[shuffled], losses[shuffled])) == pytest.approx(
        values(least_squares(steps, losses)), rel=1e-7
    )
