"""A run continued as earlier runs of its kind went."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import InputError

STEPS = np.arange(1.0, 201.0)


def run_with_milestone(level, *, drop=0.5, noise=0.0, seed=0, n=200):
    """Error falls slowly, then at three quarters of the run by half: nothing before the milestone tells of it."""
    steps = np.arange(1.0, n + 1)
    rng = np.random.default_rng(seed)
    fall = (steps / n) ** -0.2 * np.where(steps > 0.75 * n, drop, 1.0)
    return steps, level * fall * np.exp(noise * rng.standard_normal(n))


def siblings(levels, **options):
    return [run_with_milestone(level, seed=number + 1, **options) for number, level in enumerate(levels)]


def test_a_fall_that_siblings_had_is_foreseen():
    steps, losses = run_with_milestone(1.1, noise=0.01)
    half = steps <= 100
    curve = tc.fit_curve(
        steps[half], losses[half], total_steps=200, like=siblings([0.8, 0.9, 1.0, 1.2, 1.3], noise=0.01)
    )
    assert curve.predict(200) == pytest.approx(losses[-5:].mean(), rel=0.05)
    low, high = curve.interval(200)
    assert low < losses[-5:].mean() < high
    assert curve.family == "like"


def test_siblings_of_another_length_are_laid_over_by_share_of_the_run():
    steps, losses = run_with_milestone(1.1)
    half = steps <= 100
    long_ones = siblings([0.8, 0.9, 1.0, 1.2], n=1000)
    curve = tc.fit_curve(steps[half], losses[half], total_steps=200, like=long_ones)
    assert curve.predict(200) == pytest.approx(losses[-1], rel=0.05)
    assert 150 <= curve.steps_to(0.8) <= 156  # values are means over 3 % of a run


def test_runs_that_all_end_alike_draw_a_late_one_to_their_end():
    """Runs that stop at a target: where they are halfway tells nothing of where they end."""
    rng = np.random.default_rng(1)
    halfway = 0.5 + 0.1 * rng.standard_normal(20)
    earlier = [(STEPS, np.interp(STEPS, [1, 100, 200], [2.0, value, 0.25])) for value in halfway]
    seen = STEPS <= 100
    own = np.interp(STEPS, [1, 100, 200], [2.0, 0.8, 0.25])
    curve = tc.fit_curve(STEPS[seen], own[seen], total_steps=200, like=earlier)
    assert curve.predict(200) == pytest.approx(0.25, rel=0.06)


def test_accuracies_are_continued_by_what_they_lack():
    steps, errors = run_with_milestone(0.2)
    half = steps <= 100
    earlier = [(where, 100 * (1 - lacking)) for where, lacking in siblings([0.15, 0.18, 0.22, 0.25])]
    curve = tc.fit_curve(steps[half], 100 * (1 - errors[half]), total_steps=200, metric="accuracy", like=earlier)
    assert curve.is_rising
    assert curve.predict(200) == pytest.approx(90.0, abs=0.3)
    assert curve.probability_of(89.0) > 0.8


@given(st.integers(1, 6), st.integers(20, 180), st.floats(0.3, 3.0))
@settings(max_examples=30, deadline=None)
def test_the_past_is_the_log_and_the_interval_has_its_median_inside(n_siblings, n_seen, level):
    steps, losses = run_with_milestone(level, noise=0.02)
    levels = np.linspace(0.8, 1.2, n_siblings)
    curve = tc.fit_curve(steps[:n_seen], losses[:n_seen], total_steps=200, like=siblings(levels, noise=0.02))
    assert curve.predict(steps[:n_seen]) == pytest.approx(losses[:n_seen])
    low, high = curve.interval(steps)
    middle = curve.predict(steps)
    assert (low <= middle).all()
    assert (middle <= high).all()


def test_one_sibling_is_less_sure_than_ten():
    steps, losses = run_with_milestone(1.0, noise=0.01)
    width = {}
    for n in (1, 10):
        curve = tc.fit_curve(
            steps[:100], losses[:100], total_steps=200, like=siblings(np.linspace(0.9, 1.1, n), noise=0.01)
        )
        low, high = curve.interval(200)
        width[n] = high - low
    assert width[1] > 2 * width[10]


def test_without_the_length_of_the_run_there_is_nothing_to_lay_over():
    steps, losses = run_with_milestone(1.0)
    with pytest.raises(InputError, match="needs the length of the run: give its steps or epochs"):
        tc.fit_curve(steps[:100], losses[:100], like=siblings([1.0]))


def test_losses_below_zero_have_no_ratio():
    steps, losses = run_with_milestone(1.0)
    with pytest.raises(InputError, match="above 0"):
        tc.fit_curve(steps[:100], losses[:100] - 2.0, total_steps=200, like=siblings([1.0]))


def test_a_log_is_continued_as_other_logs_went(tmp_path):
    def write(name, steps, losses, n):
        path = tmp_path / name
        rows = "\n".join(f"{int(step)},{loss:.6f}" for step, loss in zip(steps[:n], losses[:n], strict=True))
        path.write_text(f"step,loss\n{rows}\n")
        return path

    steps, losses = run_with_milestone(1.05)
    own = write("own.csv", steps, losses, 100)
    earlier = [write(f"{number}.csv", *one, 200) for number, one in enumerate(siblings([0.8, 1.0, 1.2]))]
    status = tc.converge(own, total_steps=200, like=earlier)
    assert status.curve.predict(200) == pytest.approx(losses[-1], rel=0.05)


def test_a_run_of_a_file_is_not_its_own_sibling_and_others_need_no_run(tmp_path, monkeypatch):
    """Of a file with several runs, all others are siblings; one that is named has a run, those beside it need none."""
    names = ("first", "second", "own")
    rows = [
        f"{name},{int(step)},{loss:.6f}"
        for name, one in zip(names, siblings([0.8, 1.2, 1.0]), strict=True)
        for step, loss in zip(*(values[: 100 if name == "own" else 200] for values in one), strict=True)
    ]
    (tmp_path / "runs.csv").write_text("\n".join(["run,step,loss", *rows]) + "\n")
    lone = "\n".join(f"{int(step)},{loss:.6f}" for step, loss in zip(*siblings([1.1])[0], strict=True))
    (tmp_path / "lone.csv").write_text(f"step,loss\n{lone}\n")
    monkeypatch.chdir(tmp_path)
    status = tc.converge("runs.csv", total_steps=200, reading={"run": "own"}, like=[tmp_path / "runs.csv", "lone.csv"])
    assert status.curve.parameters == {"siblings": 3.0}
