"""Optimus' Equation 4: by hand, by its laws, and back from its own points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.scaling.optimus import (
    PAPER_THETA,
    TERMS,
    SpeedModel,
    SpeedPoint,
    StepParts,
    fit_speed,
    from_parts,
    paper_model,
    speed_chart,
    speed_curves,
)

GRID = [(p, w) for p in (1, 2, 3, 5) for w in (1, 2, 4, 6, 9)]
modes = st.sampled_from(["sync", "async"])
coefficients = st.one_of(st.just(0.0), st.floats(0.01, 10.0))
PARTS = StepParts(
    compute_s_per_sample=0.01,
    fixed_s=0.1,
    gradient_bytes=1e9,
    server_bytes_per_s=1e9,
    update_s=0.5,
    worker_overhead_s=0.01,
    server_overhead_s=0.02,
)


@st.composite
def models(draw):
    mode = draw(modes)
    theta = [draw(coefficients) for _ in TERMS[mode]]
    theta[0] += 0.01  # some work there must be
    batch_size = draw(st.floats(1.0, 1024.0)) if mode == "sync" else None
    return SpeedModel(mode=mode, theta=tuple(theta), batch_size=batch_size)


def points_of(model, grid=GRID, noise=None):
    noise = np.ones(len(grid)) if noise is None else noise
    return [
        SpeedPoint(n_servers=p, n_workers=w, steps_per_s=float(model.steps_per_s(p, w)) * factor)
        for (p, w), factor in zip(grid, noise, strict=True)
    ]


def test_a_synchronous_step_by_hand():
    model = SpeedModel(mode="sync", theta=(1.0, 2.0, 3.0, 4.0, 5.0), batch_size=8)
    assert 1 / model.steps_per_s(2, 4) == pytest.approx(1 * 8 / 4 + 2 + 3 * 4 / 2 + 4 * 4 + 5 * 2)  # 36 s


def test_asynchronous_workers_each_finish_their_own_step():
    model = SpeedModel(mode="async", theta=(1.0, 2.0, 3.0, 4.0))
    assert model.steps_per_s(2, 4) == pytest.approx(4 / (1 + 2 * 4 / 2 + 3 * 4 + 4 * 2))  # 4 workers in 25 s


def test_the_papers_resnet_50_by_hand():
    assert paper_model("async").steps_per_s(4, 8) == pytest.approx(8 / (2.83 + 3.92 * 2 + 0.11 * 4))
    sync = paper_model("sync", batch_size=32)
    assert 1 / sync.steps_per_s(4, 8) == pytest.approx(1.02 * 4 + 2.78 + 4.92 * 2 + 0.02 * 4)  # 16.78 s


def test_a_thousand_steps_take_a_thousand_times_one():
    model = paper_model("async")
    assert model.time_to_steps_s(1000, 2, [1, 4]) == pytest.approx(1000 / model.steps_per_s(2, [1, 4]))
    single = SpeedModel(mode="sync", theta=(0.5, 0, 0, 0, 0), batch_size=4)
    assert single.time_to_steps_s(10, 1, 2) == pytest.approx(10.0)


def test_more_workers_cannot_help_asynchronous_training_behind_one_slow_server():
    exchange_only = SpeedModel(mode="async", theta=(0.0, 1.0, 0.0, 0.0))
    assert exchange_only.steps_per_s(2, [1, 2, 8]) == pytest.approx([2.0, 2.0, 2.0])  # p / theta1, whatever w


@given(model=models(), which=st.integers(0, 4), more=st.floats(0.0, 5.0))
def test_no_coefficient_makes_a_job_faster_when_it_grows(model, which, more):
    theta = list(model.theta)
    theta[which % len(theta)] += more
    slower = SpeedModel(mode=model.mode, theta=tuple(theta), batch_size=model.batch_size)
    p, w = np.array(GRID).T
    assert (slower.steps_per_s(p, w) <= model.steps_per_s(p, w) * (1 + 1e-12)).all()


@given(model=models())
def test_least_squares_finds_the_coefficients_behind_noise_free_points(model):
    fit = fit_speed(points_of(model), mode=model.mode, batch_size=model.batch_size)
    assert fit.model.theta == pytest.approx(model.theta, rel=1e-6, abs=1e-6)
    assert fit.mean_error_fraction < 1e-8
    assert fit.leave_one_out_error_fraction < 1e-6
    assert fit.warnings == ()


@given(model=models(), factor=st.floats(0.01, 100.0))
def test_slow_and_fast_jobs_are_fitted_alike(model, factor):
    noise = 1 + 0.1 * np.cos(np.arange(len(GRID)))
    points = points_of(model, noise=noise)
    scaled = [
        SpeedPoint(n_servers=x.n_servers, n_workers=x.n_workers, steps_per_s=x.steps_per_s * factor) for x in points
    ]
    one = fit_speed(points, mode=model.mode, batch_size=model.batch_size)
    other = fit_speed(scaled, mode=model.mode, batch_size=model.batch_size)
    assert other.mean_error_fraction == pytest.approx(one.mean_error_fraction, rel=1e-6, abs=1e-9)


def test_relative_errors_count_evenly_so_the_slowest_point_does_not_decide():
    # One coefficient can be right: two points want 1 s, one point, 100 times slower, wants 2 s for it.
    points = [SpeedPoint(n_servers=1, n_workers=1, steps_per_s=speed) for speed in (1.0, 1.0, 0.01, 0.01)]
    fit = fit_speed(points, mode="async")
    round_s = 1 / float(fit.model.steps_per_s(1, 1))
    assert round_s == pytest.approx((2 * 1 + 2 / 100) / (2 * 1 + 2 / 100**2))  # minimum of the sum of (x/y - 1)^2


def test_terms_that_the_job_does_not_have_sit_at_zero_and_have_no_error_bar():
    truth = SpeedModel(mode="sync", theta=(0.5, 1.0, 2.0, 0.0, 0.0), batch_size=64)
    noise = 1 - 0.02 * np.array([w + p for p, w in GRID]) / 20  # a slight slowdown neither term can take away
    fit = fit_speed(points_of(truth, noise=1 / noise), mode="sync", batch_size=64)
    assert "per worker" in fit.at_zero
    zero = TERMS["sync"].index("per worker")
    assert fit.model.theta[zero] == 0.0
    assert np.isnan(fit.standard_errors[zero])
    assert np.isfinite(fit.standard_errors[0])


def test_error_bars_cover_the_truth_under_noise():
    truth = SpeedModel(mode="async", theta=(1.0, 2.0, 0.3, 0.4))
    inside = []
    for seed in range(40):
        noise = np.exp(np.random.default_rng(seed).normal(0, 0.02, len(GRID)))
        fit = fit_speed(points_of(truth, noise=noise), mode="async")
        inside.append(np.abs(np.array(fit.model.theta) - truth.theta) < 2 * fit.standard_errors)
    assert 0.85 < np.mean(inside) < 1.0  # 95 of 100 by theory


def test_leaving_a_point_out_is_harder_than_keeping_it():
    noise = np.exp(np.random.default_rng(0).normal(0, 0.05, len(GRID)))
    fit = fit_speed(points_of(paper_model("async"), noise=noise), mode="async")
    assert fit.n_points == 20
    assert 0.01 < fit.mean_error_fraction < fit.leave_one_out_error_fraction < 0.1


def test_as_many_points_as_coefficients_fit_exactly_and_leave_nothing_to_judge_by():
    points = points_of(SpeedModel(mode="async", theta=(1.0, 2.0, 0.3, 0.4)), [(1, 1), (1, 4), (2, 3), (5, 2)])
    fit = fit_speed(points, mode="async")
    assert fit.model.theta == pytest.approx((1.0, 2.0, 0.3, 0.4))
    assert fit.leave_one_out_error_fraction is None
    assert fit.covariance is None
    assert fit.standard_errors is None


def test_points_with_as_many_servers_as_workers_cannot_tell_the_terms_apart():
    points = points_of(paper_model("sync", batch_size=32), [(n, n) for n in range(1, 9)])
    fit = fit_speed(points, mode="sync", batch_size=32)
    assert fit.mean_error_fraction < 1e-8
    assert fit.covariance is None
    assert "3 of 5 terms" in fit.warnings[0]
    assert "Vary servers and workers independently" in fit.warnings[0]


@pytest.mark.parametrize(("mode", "batch_size", "n"), [("sync", 32.0, 5), ("async", None, 4)])
def test_fewer_points_than_coefficients_are_refused(mode, batch_size, n):
    points = points_of(paper_model(mode, batch_size=batch_size), GRID[: n - 1])
    with pytest.raises(InputError, match=f"has {n} coefficients and needs as many points, not {n - 1}"):
        fit_speed(points, mode=mode, batch_size=batch_size)


def test_coefficients_from_parts_by_hand():
    sync = from_parts(PARTS, mode="sync", batch_size=100)
    assert sync.theta == pytest.approx((0.01, 0.1, 2 * 1 + 0.5, 0.01, 0.02))
    # 25 samples, fixed, a push and a pull of 0.5 GB by four workers, their updates of half a model, overheads
    assert 1 / sync.steps_per_s(2, 4) == pytest.approx(0.25 + 0.1 + 2 * 2.0 + 4 * 0.25 + 0.04 + 0.04)
    lone = from_parts(PARTS, mode="async", batch_size=25)
    assert lone.theta == pytest.approx((0.35, 2.5, 0.01, 0.02))
    assert lone.steps_per_s(2, 4) == pytest.approx(4 / (0.35 + 5.0 + 0.04 + 0.04))


def test_one_worker_takes_the_same_round_in_both_forms():
    sync, lone = (from_parts(PARTS, mode=mode, batch_size=25) for mode in ("sync", "async"))
    assert sync.steps_per_s([1, 2, 3], 1) == pytest.approx(lone.steps_per_s([1, 2, 3], 1))


def test_curves_over_workers_for_two_and_four_servers():
    curves = speed_curves(paper_model("sync", batch_size=32), range(1, 21))
    assert [curve.n_servers for curve in curves] == [2, 4]
    # d/dw (1.02 M/w + 4.92 w/p) = 0 at w = sqrt(1.02 M p / 4.92): 3.6 and 5.2
    assert [curve.fastest_n_workers for curve in curves] == [4, 5]
    chart = speed_chart(curves)
    assert [series.name for series in chart.series] == ["2 servers", "4 servers"]
    assert chart.series[0].y[3] == pytest.approx(1 / (1.02 * 8 + 2.78 + 4.92 * 2 + 0.04))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mode": "ssp", "theta": (1.0,)}, "'sync' or 'async', not 'ssp'"),
        ({"mode": "sync", "theta": PAPER_THETA["sync"]}, "needs the global batch size M, above 0, not None"),
        ({"mode": "async", "theta": PAPER_THETA["async"], "batch_size": 32}, "has no batch size"),
        ({"mode": "async", "theta": PAPER_THETA["sync"]}, "4 coefficients, not 5"),
        ({"mode": "async", "theta": (1.0, -0.1, 0.0, 0.0)}, "none below 0"),
        ({"mode": "async", "theta": (0.0, 0.0, 0.0, 0.0)}, "not all 0"),
    ],
)
def test_a_model_that_cannot_be(settings, words):
    with pytest.raises(InputError, match=words):
        SpeedModel(**settings)


def test_points_that_cannot_be():
    with pytest.raises(InputError, match=r"number of servers should be a whole number of at least 1, not 0\."):
        SpeedPoint(n_servers=0, n_workers=1, steps_per_s=1.0)
    with pytest.raises(InputError, match=r"finite and above 0, not 0 steps"):
        SpeedPoint(n_servers=1, n_workers=1, steps_per_s=0.0)
    with pytest.raises(InputError, match=r"number of workers should be a whole number of at least 1, not 1\.5\."):
        paper_model("async").steps_per_s(1, [1, 1.5])
    with pytest.raises(InputError, match="the link needs a bandwidth above 0"):
        StepParts(compute_s_per_sample=0, fixed_s=0, gradient_bytes=1, server_bytes_per_s=0, update_s=0)
