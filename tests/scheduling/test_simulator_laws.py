"""What holds for every policy and any jobs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import AT_ONCE, ONE_TYPE, job, simulate

from traincast.scheduling.failures import Failures
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.profile import CountProfile
from traincast.scheduling.simulator import Rules, simulate_policy

jobs_of_any_kind = st.lists(
    st.builds(
        lambda submit, seconds, n, more, exponent: (submit, seconds, n, more, exponent),
        st.integers(0, 500),
        st.integers(1, 400),
        st.integers(1, 4),
        st.integers(0, 4),
        st.sampled_from((0.5, 0.8, 1.0)),
    ),
    min_size=1,
    max_size=8,
)
rules = st.sampled_from((AT_ONCE, Rules(interval_s=60), Rules(interval_s=60, work_sigma=0.5, speed_sigma=0.2)))


def built(drawn, restart_s=5.0):
    return [
        job(f"job{place}", submit, seconds, n, n + more, exponent, restart_s)
        for place, (submit, seconds, n, more, exponent) in enumerate(drawn)
    ]


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind, rules=rules)
def test_no_device_is_given_twice(policy, drawn, rules):
    schedule = simulate(built(drawn), policy, nodes=2, devices=4, rules=rules)
    for node in range(2):
        changes = sorted(
            change
            for span in schedule.spans
            for where, n in span.placement
            if where == node
            for change in ((span.since_s, n), (span.until_s, -n))
        )
        changes.sort(key=lambda change: (change[0], change[1]))  # what ends at a moment is free in it
        assert max(np.cumsum([n for _, n in changes]), default=0) <= 4


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind, rules=rules)
def test_every_job_does_its_whole_work_and_no_more(policy, drawn, rules):
    jobs = built(drawn)
    schedule = simulate(jobs, policy, nodes=2, devices=4, rules=rules)
    profiles = {one.name: one.profile for one in jobs}
    done = dict.fromkeys(range(len(jobs)), 0.0)
    for span in schedule.spans:
        shape = tuple(n for _, n in span.placement)
        (whole_s,) = profiles[schedule.jobs[span.job].name].segment_s(shape, "GPU", 0)
        done[span.job] += (span.until_s - span.begins_s) / whole_s
    assert list(done.values()) == pytest.approx([1.0] * len(jobs))


@pytest.mark.parametrize("policy", ["fifo", "srtf", "drf", "tiresias", "gavel"])
@given(drawn=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200), st.integers(1, 2)), min_size=1, max_size=6))
def test_on_several_types_a_job_runs_on_one_of_them_at_a_time_and_ends(policy, drawn):
    jobs = []
    for place, (submit, seconds, n) in enumerate(drawn):
        kinds = {"V100": (2.0 * seconds, 1.0 * seconds), "T4": (4.0 * seconds, 2.0 * seconds)}
        if place % 3 == 0:
            del kinds["V100"]
        profile = CountProfile(name="plain", seconds=kinds)
        jobs.append(Job(name=f"job{place}", submit_s=submit, profile=profile, n_devices=n, restart_s=3))
    machines = find_machines("1x4xT4+2x2xV100")
    schedule = simulate_policy(jobs, machines, make_policy(policy), Rules(interval_s=60))
    assert np.isfinite(schedule.completions_s).all()
    only_t4 = {number for number, one in enumerate(schedule.jobs) if int(one.name.removeprefix("job")) % 3 == 0}
    for span in schedule.spans:
        kinds = {machines.kinds[node] for node, _ in span.placement}
        assert len(kinds) == 1
        assert kinds == {"T4"} or span.job not in only_t4


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind, rules=rules)
def test_time_never_runs_backward(policy, drawn, rules):
    schedule = simulate(built(drawn), policy, nodes=2, devices=4, rules=rules)
    assert all(before.now_s < after.now_s for before, after in pairwise(schedule.moments))
    assert all(span.since_s <= span.begins_s <= span.until_s for span in schedule.spans)
    assert all(record.submit_s <= record.start_s < record.finish_s for record in schedule.jobs)


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind)
def test_the_same_seed_gives_the_same_schedule(policy, drawn):
    noisy = Rules(interval_s=60, work_sigma=0.5, speed_sigma=0.5, failures=Failures(mean_between_s=2000), seed=3)
    first, second = (simulate(built(drawn), policy, nodes=2, devices=4, rules=noisy) for _ in range(2))
    assert first.spans == second.spans


@pytest.mark.parametrize("policy", ["drf", "optimus", "pollux"])
@given(drawn=jobs_of_any_kind)
def test_with_a_device_for_everyone_no_job_waits_longer_than_an_interval(policy, drawn):
    schedule = simulate(built(drawn), policy, nodes=2, devices=4, rules=Rules(interval_s=60))
    assert all(record.wait_s <= 60 for record in schedule.jobs)


@given(n_jobs=st.integers(2, 8))
def test_gavel_runs_everyone_within_as_many_rounds_as_there_are_jobs(n_jobs):
    jobs = [job(f"job{place}", seconds=5000, n=4) for place in range(n_jobs)]
    schedule = simulate(jobs, "gavel", devices=4, rules=Rules(interval_s=60))
    assert max(record.wait_s for record in schedule.jobs) <= 360 * n_jobs


def test_a_long_job_is_not_starved_by_a_stream_of_short_ones():
    stream = [job(f"short{place}", submit_s=50 * place, seconds=100, n=2) for place in range(200)]
    long = job("long", submit_s=10, seconds=500, n=2, most=4)
    for policy in ("drf", "optimus", "gavel", "tiresias", "pollux"):
        schedule = simulate([long, *stream], policy, devices=4, rules=Rules(interval_s=60))
        ended = next(record for record in schedule.jobs if record.name == "long")
        assert ended.completion_s < 6000, policy


@given(n_jobs=st.integers(1, 10), n=st.integers(1, 3), seconds=st.integers(1, 100), devices=st.integers(3, 6))
def test_more_devices_never_hurt_first_in_first_out_on_identical_jobs(n_jobs, n, seconds, devices):
    jobs = [job(f"job{place}", submit_s=7 * place, seconds=seconds, n=n, restart_s=1) for place in range(n_jobs)]
    fewer, more = (simulate(jobs, devices=size) for size in (devices, devices + 1))
    assert (more.completions_s <= fewer.completions_s + 1e-9).all()


@given(drawn=jobs_of_any_kind, seed=st.integers(0, 5))
def test_failures_cost_time_and_everyone_still_ends(drawn, seed):
    jobs = built(drawn)
    failing = Failures(mean_between_s=500, repair_s=100, checkpoint_s=20, seed=seed)
    schedule = simulate(jobs, "fifo", nodes=2, devices=4, rules=Rules(interval_s=0, failures=failing))
    calm = simulate(jobs, "fifo", nodes=2, devices=4)
    assert schedule.makespan_s >= calm.makespan_s - 1e-6 or schedule.n_failures == 0 or len(jobs) > 1
    assert np.isfinite(schedule.completions_s).all()


def test_a_lone_job_that_fails_repeats_what_came_after_its_checkpoint():
    failing = Failures(mean_between_s=300, repair_s=50, checkpoint_s=30, seed=1)
    schedule = simulate([job("a", seconds=2000)], devices=1, rules=Rules(interval_s=0, failures=failing))
    assert schedule.n_failures > 0
    ran = [span.until_s - span.begins_s for span in schedule.spans]
    kept = sum(seconds - seconds % 30 for seconds in ran[:-1]) + ran[-1]
    assert kept == pytest.approx(2000)
    assert schedule.makespan_s == pytest.approx(sum(ran) + 50 * schedule.n_failures)


def test_errors_of_forecasts_change_only_who_uses_forecasts():
    jobs = [job(f"job{place}", submit_s=place, seconds=50 + 37 * (place * 7 % 11), n=2) for place in range(12)]
    wrong = Rules(interval_s=0, work_sigma=2.0, seed=4)
    for policy in ("fifo", "tiresias"):
        assert simulate(jobs, policy, rules=wrong).spans == simulate(jobs, policy).spans
    exact = simulate(jobs, "srtf").mean_completion_s
    assert simulate(jobs, "srtf", rules=wrong).mean_completion_s > exact
    assert simulate(jobs, "srtf", rules=Rules(interval_s=0, speed_sigma=2.0)).mean_completion_s > exact


def test_an_error_of_speed_is_the_same_wherever_a_number_of_devices_is_asked_for():
    errors = ForecastErrors(3, seed=1, work_sigma=0.5, speed_sigma=0.5)
    by_count = errors.apply(2, np.ones(4))
    assert errors.factors([2], [3]) == pytest.approx(by_count[3])
    assert errors.apply(2, np.ones(9))[:4] == pytest.approx(by_count)
