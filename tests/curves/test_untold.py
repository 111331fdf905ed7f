"""A curve whose learning rate nobody tells: weighed against the simplest forecasts, with no fall assumed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.curves.fit import kind_of
from traincast.curves.points import Points
from traincast.curves.priors import shipped
from traincast.curves.rivals import optimus_law, stays, trend
from traincast.curves.unknown_rate import Scale, UnknownRate
from traincast.curves.weighed import weights_of

STEPS = np.arange(100.0, 4001.0, 100.0)
NO_SCALE = Scale(intercept=0.0, per_log_sd=0.0, per_log_noise=0.0, per_log_horizon=0.0)


def noisy(values, sd, seed=0):
    return values * np.exp(sd * np.random.default_rng(seed).standard_normal(len(values)))


def test_optimus_law_is_found_again():
    law = optimus_law(Points(STEPS, 1.0 + 4000.0 / (STEPS + 500.0)))
    assert float(law(np.array([20_000.0]))[0]) == pytest.approx(1.0 + 4000.0 / 20_500.0, rel=0.06)


def test_a_trend_goes_on_whether_it_falls_or_rises():
    for exponent in (-0.3, 0.2):
        law = trend(Points(STEPS, 5.0 * STEPS**exponent))
        assert float(law(np.array([40_000.0]))[0]) == pytest.approx(5.0 * 40_000.0**exponent, rel=1e-6)


def test_what_stays_is_the_median_of_the_last_eighth():
    values = np.r_[np.full(35, 9.0), [1.0, 2.0, 3.0, 4.0, 5.0]]
    assert float(stays(Points(STEPS, values))(np.array([1e6]))[0]) == 3.0


def test_the_forecast_that_was_right_so_far_counts_most():
    is_law = weights_of(Points(STEPS, 2.0 + 8.0 * STEPS**-0.4))
    has_stopped = weights_of(Points(STEPS, np.where(STEPS < 700, 5.0 - STEPS / 200.0, 1.5)))
    assert np.argmax(is_law) == 0
    assert has_stopped[3] > 3 * is_law[3]
    assert is_law.sum() == pytest.approx(1.0)


def test_too_few_points_to_look_back_leave_the_usual_shares():
    assert weights_of(Points(STEPS[:4], np.array([4.0, 3.0, 2.5, 2.2]))) == pytest.approx([0.8, 0.06, 0.08, 0.06])


@given(level=st.floats(0.01, 50.0), gain=st.floats(0.0, 0.5))
@settings(max_examples=20, deadline=None)
def test_no_level_of_a_loss_makes_it_fall_out_of_sight(level, gain):
    """As it was for a loss of 0.12, which was told to end at 0.004."""
    losses = level * (1.0 + gain * (STEPS / 100.0) ** -0.5)
    curve = tc.fit_curve(STEPS, losses, total_steps=10_000, metric="loss")
    assert 0.9 * level < curve.predict(10_000) <= 1.01 * losses[-1]


def test_what_a_fall_of_the_rate_would_bring_is_told_and_not_assumed():
    losses = 2.0 + 8.0 * STEPS**-0.4
    curve = tc.fit_curve(STEPS, losses, total_steps=10_000)
    (told,) = curve.warnings
    if_it_fell = float(told.split("near ")[1].split()[0])
    as_it_is = float(told.split("instead of ")[1].split(". ")[0])
    assert if_it_fell < as_it_is
    assert as_it_is == pytest.approx(curve.predict(10_000), rel=1e-3)
    assert "no fall of it is assumed" in told


def test_nothing_is_said_of_the_rate_of_a_run_that_is_over():
    assert tc.fit_curve(STEPS, 2.0 + 8.0 * STEPS**-0.4, total_steps=4_000).warnings == ()


def test_accuracies_that_jump_about_are_told_to_end_higher_than_smooth_ones():
    accuracies = 0.9 - 2.0 * STEPS**-0.5
    smooth = tc.fit_curve(STEPS, accuracies, total_steps=10_000, metric="accuracy")
    jumps = tc.fit_curve(STEPS, 1 - noisy(1 - accuracies, 0.08), total_steps=10_000, metric="accuracy")
    assert jumps.predict(10_000) > smooth.predict(10_000) + 0.01


def test_an_error_rate_is_told_apart_from_other_losses_by_its_name():
    assert {name: kind_of(name) for name in ("top1_err", "wer", "mean_squared_error", "val_loss")} == {
        "top1_err": "error", "wer": "error", "mean_squared_error": "loss", "val_loss": "loss",
    }  # fmt: skip
    errors = noisy(0.1 + 2.0 * STEPS**-0.5, 0.08)
    as_error, as_loss = (
        tc.fit_curve(STEPS, errors, total_steps=10_000, metric=metric).predict(10_000) for metric in ("error", "loss")
    )
    assert as_error < as_loss


def test_a_fall_is_less_near_the_end_and_never_more_than_half_of_what_is_to_come():
    told = UnknownRate(loss_fall=0.02, loss_part=0.5, error_fall=0.4, error_noise=0.02, below=NO_SCALE, above=NO_SCALE)
    assert told.fall(0.02, to_come=1.0, moves=-1.0, is_error=True) == pytest.approx(0.2)
    assert told.fall(0.02, to_come=1.0, moves=-1.0, is_error=False) == pytest.approx(0.02)
    assert told.fall(0.02, to_come=1.0, moves=-0.01, is_error=False) == pytest.approx(0.005)
    assert told.fall(0.02, to_come=0.1, moves=-1.0, is_error=False) < 0.01


def test_the_interval_grows_with_the_noise_and_the_distance():
    widths = []
    for sd, end in ((0.002, 5_000), (0.002, 20_000), (0.05, 20_000)):
        low, high = tc.fit_curve(STEPS, noisy(2.0 + 8.0 * STEPS**-0.4, sd), total_steps=end).interval(end)
        widths.append(high - low)
    assert widths == sorted(widths)


def test_a_single_accuracy_above_1_does_not_make_the_others_percents():
    accuracies = 0.9 - 2.0 * STEPS**-0.5
    accuracies[3] = 60.0
    assert 0.85 < tc.fit_curve(STEPS, accuracies, total_steps=10_000, metric="accuracy").predict(10_000) <= 1.0


def test_shipped_numbers_tell_where_they_come_from():
    assert "18 sources" in shipped().provenance
