"""Curves through logged values: what they continue, what they say of themselves, and what they refuse."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.curves.schedule import read_schedule
from traincast.errors import InputError

STEPS = np.arange(100, 4001, 100.0)


def power(steps, floor=2.0, scale=8.0, exponent=0.4):
    return floor + scale * steps**-exponent


def noisy(values, sd, seed=0):
    return values * np.exp(sd * np.random.default_rng(seed).standard_normal(len(values)))


@given(
    floor=st.floats(0.0, 3.0),
    scale=st.floats(2.0, 20.0),
    exponent=st.floats(0.15, 0.9),
)
@settings(max_examples=30, deadline=None)
def test_a_power_law_is_continued(floor, scale, exponent):
    losses = power(STEPS, floor, scale, exponent)
    curve = tc.fit_curve(STEPS, losses)
    truth = power(np.array([10_000.0]), floor, scale, exponent)[0]
    assert curve.predict(10_000) == pytest.approx(truth, rel=0.2)
    low, high = curve.interval(10_000)
    assert low <= truth * 1.1
    assert high >= truth * 0.9


def test_noise_and_spikes_move_it_little():
    losses = noisy(power(STEPS), 0.02)
    losses[[7, 20, 33]] *= 3.0
    assert tc.fit_curve(STEPS, losses).predict(10_000) == pytest.approx(power(10_000.0), rel=0.05)


@given(stretch=st.floats(0.01, 100.0))
@settings(max_examples=20, deadline=None)
def test_the_unit_of_steps_hardly_matters(stretch):
    """But for a point that rounding moves across the edge of a window."""
    losses = noisy(power(STEPS), 0.01)
    plain = tc.fit_curve(STEPS, losses)
    other = tc.fit_curve(STEPS * stretch, losses)
    assert other.predict(8_000 * stretch) == pytest.approx(plain.predict(8_000), rel=0.01)


def test_more_of_the_run_makes_the_interval_narrower():
    steps = np.arange(100, 10_001, 100.0)
    losses = noisy(power(steps), 0.02)
    widths = []
    for n in (20, 50, 90):
        low, high = tc.fit_curve(steps[:n], losses[:n]).interval(12_000)
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]


def test_a_known_drop_of_the_rate_lowers_the_forecast_and_widens_it():
    losses = noisy(power(STEPS, floor=0.1, scale=1.0), 0.1)
    stays = tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate={0: 0.1})
    drops = tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate={0: 0.1, 6_000: 0.01})
    assert drops.predict(5_900) == pytest.approx(stays.predict(5_900), rel=0.02)
    assert drops.predict(7_000) < 0.8 * stays.predict(7_000)
    wide, narrow = drops.interval(7_000), stays.interval(7_000)
    assert wide[1] / wide[0] > narrow[1] / narrow[0]


def test_a_drop_that_was_seen_tells_how_far_the_next_one_goes():
    rates = {0: 1.0, 1_000: 0.1, 3_000: 0.01}
    annealed = np.where(STEPS >= 3_000, 1.0, np.where(STEPS >= 1_000, 0.67, 0.0))
    truth = power(STEPS, floor=0.2, scale=2.0) * np.exp(-1.5 * annealed)
    seen = STEPS < 2_500
    curve = tc.fit_curve(STEPS[seen], truth[seen], total_steps=4_000, learning_rate=rates)
    assert curve.predict(4_000) == pytest.approx(truth[-1], rel=0.35)


@pytest.mark.parametrize(
    "rates",
    [lambda step: 1.0 - step / 8_000, np.linspace(1.0, 0.0, 8_001), 1.0 - STEPS / 8_000],
    ids=["function", "every step", "logged steps"],
)
def test_a_rate_may_be_given_in_several_ways(rates):
    losses = noisy(power(STEPS), 0.003)
    given_as_function = tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate=lambda step: 1.0 - step / 8_000)
    found = tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate=rates)
    assert found.predict(8_000) == pytest.approx(given_as_function.predict(8_000), rel=0.02)


def test_accuracies_rise_towards_a_bound():
    accuracies = 0.95 - 0.6 * STEPS**-0.4 * 5
    accuracies = np.clip(accuracies, 0, 1)
    curve = tc.fit_curve(STEPS, accuracies)
    assert curve.is_rising
    assert accuracies[-1] < curve.predict(20_000) <= 1.0
    low, high = curve.interval(1e5)
    assert 0.0 <= low <= high <= 1.0


def test_percent_are_accuracies_too_if_one_says_so():
    curve = tc.fit_curve(STEPS, 95.0 - 300 * STEPS**-0.4, metric="accuracy")
    assert curve.predict(20_000) == pytest.approx(95.0 - 300 * 20_000**-0.4, abs=1.0)


def test_steps_to_a_target_are_where_the_prediction_reaches_it():
    curve = tc.fit_curve(STEPS, noisy(power(STEPS), 0.005), learning_rate="constant")
    target = float(power(8_000.0))
    assert curve.steps_to(target) == pytest.approx(8_000, rel=0.1)
    low, high = curve.interval_to(target)
    assert low <= curve.steps_to(target) <= high


def test_a_target_below_the_floor_is_not_reached():
    curve = tc.fit_curve(STEPS, power(STEPS), total_steps=6_000)
    assert curve.steps_to(0.5) == np.inf
    assert curve.probability_of(0.5) < 0.05


@pytest.mark.parametrize("family", ["auto", "optimus"])
@pytest.mark.parametrize(
    ("losses", "words"),
    [(np.full(40, 2.0), "no curve|constant|flat|degenerate"), (np.linspace(1, 3, 40), "rises|degenerate|flat|b0")],
)
def test_what_is_no_curve_is_continued_with_a_warning(family, losses, words):
    import re

    curve = tc.fit_curve(STEPS, losses, family)
    assert np.isfinite(curve.predict(8_000))
    assert re.search(words, " ".join(curve.warnings), re.IGNORECASE)


def test_points_that_are_not_finite_are_left_out_and_told():
    losses = power(STEPS)
    losses[[3, 9]] = np.nan, np.inf
    curve = tc.fit_curve(STEPS, losses)
    assert "2 of 40 points are not finite" in curve.warnings[0]


def test_steps_out_of_order_are_sorted():
    order = np.random.default_rng(0).permutation(len(STEPS))
    shuffled = tc.fit_curve(STEPS[order], power(STEPS)[order])
    assert shuffled.predict(9_000) == pytest.approx(tc.fit_curve(STEPS, power(STEPS)).predict(9_000))
    assert "sorted" in shuffled.warnings[0]


def test_losses_below_zero_are_continued():
    losses = power(STEPS) - 5.0
    assert tc.fit_curve(STEPS, losses).predict(10_000) == pytest.approx(power(10_000.0) - 5.0, abs=0.15)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=40))
@example([1.0, 1.0, 3.5e-220, 3.5e-220])
@settings(max_examples=60, deadline=None)
def test_any_finite_values_get_a_finite_answer(values):
    curve = tc.fit_curve(np.arange(len(values)), values)
    low, high = curve.interval(2 * len(values))
    assert np.isfinite([low, high, curve.predict(2 * len(values))]).all()
    assert low <= curve.predict(2 * len(values)) <= high


@pytest.mark.parametrize("level", [2.2e-308, 1e-160, 1e-5])
def test_spikes_of_any_height_are_survived(level):
    values = np.full(10, level)
    values[4:6] = 1e6
    curve = tc.fit_curve(np.arange(10), values)
    assert np.isfinite([curve.predict(20), *curve.interval(20)]).all()


def test_values_that_rise_by_any_factor_are_survived():
    curve = tc.fit_curve(np.arange(8), [1e-160] * 4 + [1.5] * 3 + [1e-160], metric="loss")
    assert np.isfinite([curve.predict(16), *curve.interval(16)]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": [1, 2, 3], "losses": [3, 2, 1]}, "at least 4 finite points, but there are 3"),
        ({"steps": [1, 2, 3, 4], "losses": [np.nan] * 4}, "at least 4 finite points, but there are 0"),
        ({"steps": [1, 2], "losses": [1, 2, 3]}, "as many steps as values"),
        ({"steps": [-5, 1, 2, 3], "losses": [4, 3, 2, 1]}, "at least 0"),
        ({"family": "autoo"}, "family 'autoo' is not known. Close names: auto"),
        ({"total_steps": 0}, "total_steps cannot be 0: give a number above 0"),
        ({"learning_rate": [0.1, 0.2]}, "learning_rate has 2 rates"),
        ({"learning_rate": {}}, "learning_rate is empty"),
        ({"learning_rate": {0: -0.1}}, "not below 0"),
    ],
)
def test_bad_input_is_told_in_a_sentence(change, words):
    asked = {"steps": STEPS, "losses": power(STEPS)} | change
    with pytest.raises(InputError, match=words):
        tc.fit_curve(asked.pop("steps"), asked.pop("losses"), **asked)


@given(
    level=st.floats(0.05, 4.0),
    share=st.floats(0.3, 0.99),
    rates=st.sampled_from([None, "constant", "linear:0.4", "1,0.1@3000", "1,0.1@1000,0.01@6000"]),
)
@settings(max_examples=40, deadline=None)
def test_the_forecast_of_the_present_is_what_is_logged(level, share, rates):
    """Whatever the rate did so far, and whether anybody says so or not; but for the moment of a milestone."""
    assume(min(abs(share - 0.3), abs(share - 0.6)) > 0.03)
    steps = np.arange(50, 10_001, 50.0)
    schedule = read_schedule(rates, steps, 10_000)
    annealed = 0.0 if schedule is None else schedule.annealed(steps)
    drop = 0.5 * level**-1.75 if level > 0.6 else 1.2  # about what published runs fall by
    truth = level * power(steps, floor=0.5, scale=2.0) * np.exp(-drop * annealed)
    seen = steps <= share * 10_000
    curve = tc.fit_curve(steps[seen], noisy(truth[seen], 0.01), total_steps=10_000, learning_rate=rates)
    assert curve.predict(curve.last_step) == pytest.approx(truth[seen][-1], rel=0.2)


def test_a_log_that_begins_after_a_milestone_is_continued_from_where_it_is():
    losses = noisy(power(STEPS, floor=0.2, scale=1.0), 0.01)
    rates = {0: 1.0, 50: 0.1}
    assert tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate=rates).predict(4_000) == pytest.approx(
        power(4_000.0, floor=0.2, scale=1.0), rel=0.05
    )


def test_logged_stairs_tell_what_has_happened_and_stay_where_they_are():
    logged = np.where(STEPS < 2_000, 1.0, 0.1)
    losses = power(STEPS, floor=0.3, scale=2.0) * np.where(STEPS < 2_000, 1.0, 0.5)
    curve = tc.fit_curve(STEPS, losses, total_steps=6_000, learning_rate=logged)
    assert curve.predict(4_000) == pytest.approx(losses[-1], rel=0.06)
    assert curve.predict(6_000) == pytest.approx(losses[-1], rel=0.1)


def test_a_rate_that_is_stepped_once_an_epoch_falls_steadily():
    steps = np.arange(10, 6_001, 10.0)
    by_epoch = 0.5 * (1 + np.cos(np.pi * np.floor(steps / 400) * 400 / 10_000))
    losses = noisy(power(steps, floor=1.0), 0.003)
    asked = {"total_steps": 10_000}
    known = tc.fit_curve(steps, losses, learning_rate="cosine", **asked)
    logged = tc.fit_curve(steps, losses, learning_rate=by_epoch, **asked)
    assert logged.predict(10_000) == pytest.approx(known.predict(10_000), rel=0.05)


def test_a_curve_that_goes_on_past_the_usual_decay_is_not_taken_to_fall():
    """At nine tenths of the run a rate that came down would have shown: the loss follows its law, so it did not."""
    steps = np.arange(20, 10_001, 20.0)
    losses = noisy(power(steps, floor=0.05, scale=2.0), 0.005)
    late = steps <= 9_000
    curve = tc.fit_curve(steps[late], losses[late], total_steps=10_000)
    assert curve.predict(10_000) == pytest.approx(power(10_000.0, floor=0.05, scale=2.0), rel=0.1)


@pytest.mark.parametrize(
    "law",
    [
        lambda k: 0.5 + 2 * np.exp(-k / 1_500),
        lambda k: 0.3 + np.exp(-k / 800) + 4 * k**-0.4,
        lambda k: 1.0 + 2 * np.exp(-k / 2_000) + 8 * k**-0.5,
        lambda k: 5 * k**-0.2 + 100 / k,
    ],
    ids=["exponential", "exponential and power", "slow exponential and power", "two powers"],
)
def test_exponentials_and_sums_of_laws_end_in_or_near_the_interval(law):
    curve = tc.fit_curve(STEPS, noisy(law(STEPS), 0.01))
    low, high = curve.interval(10_000)
    assert 0.97 * low <= law(10_000.0) <= 1.03 * high
    assert curve.predict(10_000) == pytest.approx(law(10_000.0), rel=0.2)


def test_rates_of_values_that_are_not_finite_or_not_in_order_stay_with_them():
    losses, rates = noisy(power(STEPS), 0.003), 1.0 - STEPS / 8_000
    order = np.random.default_rng(0).permutation(len(STEPS))
    holey = losses[order].copy()
    holey[3] = np.nan
    plain = tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate=rates)
    other = tc.fit_curve(STEPS[order], holey, total_steps=8_000, learning_rate=rates[order])
    assert other.predict(8_000) == pytest.approx(plain.predict(8_000), rel=0.02)


def test_steps_of_milestones_may_be_words_as_in_json():
    losses = noisy(power(STEPS, floor=0.1, scale=1.0), 0.05)
    asked = {"total_steps": 40_000}
    numbers = tc.fit_curve(STEPS, losses, learning_rate={0: 1.0, 4_500: 0.1, 32_000: 0.01}, **asked)
    words = tc.fit_curve(STEPS, losses, learning_rate={"0": 1.0, "4500": 0.1, "32000": 0.01}, **asked)
    assert words.predict(30_000) == numbers.predict(30_000)


def test_a_function_of_the_step_is_asked_beyond_what_was_logged():
    losses = noisy(power(STEPS, floor=0.1, scale=1.0), 0.05)
    falls = tc.fit_curve(STEPS, losses, learning_rate=lambda step: 1.0 if step < 6_000 else 0.1)
    stays = tc.fit_curve(STEPS, losses, learning_rate=0.1)
    assert falls.predict(9_000) < 0.9 * stays.predict(9_000)


def test_the_law_of_optimus_is_fitted_to_what_an_accuracy_lacks():
    accuracies = 1 - 1 / (0.004 * STEPS + 1.2) - 0.05
    curve = tc.fit_curve(STEPS, accuracies, "optimus", metric="accuracy")
    assert curve.is_rising
    assert curve.predict(20_000) == pytest.approx(1 - 1 / (0.004 * 20_000 + 1.2) - 0.05, abs=0.01)
    assert curve.parameters == pytest.approx({"b0": 0.004, "b1": 1.2, "b2": 0.05}, rel=0.01)
    assert curve.steps_to(accuracies[-1] + 0.01) > STEPS[-1]
    assert curve.warnings[0].startswith("Optimus' law describes losses")


def test_options_that_do_not_go_together_are_told_or_refused():
    losses = power(STEPS)
    told = tc.fit_curve(STEPS, losses, "optimus", learning_rate={0: 0.1}).warnings
    assert any("has no learning rate" in warning for warning in told)
    for more in ({"family": "optimus"}, {"learning_rate": {0: 0.1}}):
        with pytest.raises(InputError, match="takes no family and no learning rate"):
            tc.fit_curve(STEPS, losses, total_steps=10_000, like=[(STEPS, losses)], **more)


def test_what_the_values_are_may_be_said_by_any_name():
    rising = 0.9 - 0.5 * (STEPS / STEPS[0]) ** -0.5
    assert tc.fit_curve(STEPS, rising, metric="eval_f1").is_rising
    assert not tc.fit_curve(STEPS, rising, metric="val_loss").is_rising
    guessed = tc.fit_curve(STEPS, rising)
    assert guessed.is_rising
    assert "are read as accuracies" in guessed.warnings[0]
    with pytest.raises(InputError, match="The metric 'tomato' is unknown"):
        tc.fit_curve(STEPS, rising, metric="tomato")


def test_rates_in_words_and_as_one_number():
    losses = power(STEPS)
    ends = [
        tc.fit_curve(STEPS, losses, total_steps=10_000, learning_rate=rate).predict(10_000)
        for rate in ("cosine", "constant", 0.1, {0: 0.1})
    ]
    assert ends[0] < ends[1]
    assert ends[1:] == pytest.approx([ends[1]] * 3)


def test_a_rate_that_has_no_value_at_step_0_is_known_from_then_on():
    """Noam's: 1/sqrt(step) after a warm-up."""

    def of_noam(step):
        return min(step**-0.5, step * 400**-1.5)

    losses = power(STEPS)
    known = tc.fit_curve(STEPS, losses, total_steps=10_000, learning_rate=lambda step: of_noam(max(step, 1.0)))
    asked = tc.fit_curve(STEPS, losses, total_steps=10_000, learning_rate=of_noam)
    assert asked.predict(10_000) == pytest.approx(known.predict(10_000), rel=1e-3)


def test_rates_go_where_their_values_went():
    """Rows out of order, and one whose loss is no number: the schedule is the same."""
    steps = np.arange(1.0, 401.0)
    rates = np.where(steps < 200, 0.1, 0.01)
    losses = power(steps) * np.where(steps < 200, 1.0, 0.5)
    ordered = tc.fit_curve(steps, losses, total_steps=800, learning_rate=rates)
    order = np.random.default_rng(0).permutation(len(steps))
    losses[37] = np.nan
    shuffled = tc.fit_curve(steps[order], losses[order], total_steps=800, learning_rate=rates[order])
    assert shuffled.predict(800) == pytest.approx(ordered.predict(800), rel=0.01)


def test_that_the_schedule_is_a_guess_is_told():
    losses = power(STEPS)
    told = tc.fit_curve(STEPS, losses, total_steps=8_000).warnings
    assert any("no fall of it is assumed" in one for one in told)
    assert tc.fit_curve(STEPS, losses, total_steps=8_000, learning_rate="constant").warnings == ()
    assert any("Neither the length" in told for told in tc.fit_curve(STEPS, losses).warnings)
    assert tc.fit_curve(STEPS, losses, learning_rate="constant").warnings == ()


def test_a_rate_that_was_constant_so_far_may_come_down_with_and_without_a_known_end():
    losses, rates = power(STEPS), np.full(len(STEPS), 0.1)
    for end in ({"total_steps": 8_000}, {}):
        logged, unknown = (tc.fit_curve(STEPS, losses, learning_rate=rate, **end) for rate in (rates, None))
        assert logged.warnings == unknown.warnings
        assert logged.interval(8_000) == unknown.interval(8_000)


def test_a_run_without_a_known_end_is_less_sure_than_one_whose_rate_stays():
    losses = power(STEPS)
    stays = tc.fit_curve(STEPS, losses, learning_rate="constant").interval(2 * STEPS[-1])
    unknown = tc.fit_curve(STEPS, losses).interval(2 * STEPS[-1])
    assert unknown[0] < stays[0] < stays[1] < unknown[1]
    soon, later = (tc.fit_curve(STEPS, losses).interval(share * STEPS[-1]) for share in (1.01, 1.5))
    assert soon[1] - soon[0] < later[1] - later[0]


@pytest.mark.parametrize("total_steps", [None, 8_000])
def test_what_does_not_fall_goes_on_as_it_is(total_steps):
    rising = tc.fit_curve(STEPS, 1.0 + 0.002 * STEPS, total_steps=total_steps)
    assert rising.predict(6_000) == pytest.approx(1.0 + 0.002 * STEPS[-1], rel=0.1)
    low, high = rising.interval(6_000)
    assert low < 1.0 + 0.002 * STEPS[-1] < high
    for value in (0.0, 1.0, -3.0):
        flat = tc.fit_curve(STEPS, np.full(len(STEPS), value), total_steps=total_steps)
        assert flat.predict(8_000) == pytest.approx(value, abs=0.02)


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e30])
def test_losses_of_any_size_are_continued(unit):
    curve = tc.fit_curve(STEPS, unit * power(STEPS), learning_rate="constant")
    assert curve.predict(10_000) / unit == pytest.approx(power(10_000.0), rel=0.1)
