"""What holds for every policy and any jobs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import AT_ONCE, ONE_TYPE, job, simulate

from traincast.scheduling.failures import FailureClock, Failures
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.profile import CountProfile, plain_profile
from traincast.scheduling.simulator import Rules, simulate_policy

ELASTIC = ("drf", "optimus", "pollux", "traincast")
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
FAILING = Failures(mean_between_s=400, repair_s=100, checkpoint_s=20)
rules = st.sampled_from(
    (
        AT_ONCE,
        Rules(interval_s=60),
        Rules(interval_s=60, work_sigma=0.5, speed_sigma=0.2),
        Rules(interval_s=0, failures=FAILING),
        Rules(interval_s=60, failures=FAILING, seed=1),
    )
)


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
    if schedule.n_failures:  # what came after the last checkpoint before a failure is done again
        assert all(one >= 1 - 1e-9 for one in done.values())
    else:
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


@pytest.mark.parametrize("policy", ["srtf", "drf", "tiresias", "gavel", "optimus", "pollux", "traincast"])
@given(drawn=jobs_of_any_kind)
def test_no_device_is_idle_while_a_job_that_would_fit_waits(policy, drawn):
    jobs = [replace(one, profile=plain_profile("plain", one.profile.seconds, one.n_devices)) for one in built(drawn)]
    schedule = simulate(jobs, policy, nodes=2, devices=4)
    for moment in schedule.moments:
        running = {span.job for span in schedule.spans if span.since_s <= moment.now_s < span.until_s}
        waiting = [
            schedule.jobs[number].name
            for number, record in enumerate(schedule.jobs)
            if record.submit_s <= moment.now_s < record.finish_s and number not in running
        ]
        least = [1 if policy in ELASTIC else one.n_devices for one in jobs if one.name in waiting]
        assert all(n > 8 - moment.n_devices for n in least)


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind, rules=rules, tenths=st.integers(0, 9))
def test_time_never_runs_backward(policy, drawn, rules, tenths):
    jobs = [replace(one, submit_s=one.submit_s + 0.1 * tenths) for one in built(drawn)]
    schedule = simulate(jobs, policy, nodes=2, devices=4, rules=rules)
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
    for policy in ("drf", "optimus", "gavel", "pollux"):
        schedule = simulate([long, *stream], policy, devices=4, rules=Rules(interval_s=60))
        ended = next(record for record in schedule.jobs if record.name == "long")
        assert ended.completion_s < 6000, policy


@given(n_jobs=st.integers(1, 10), n=st.integers(1, 3), seconds=st.integers(1, 100), devices=st.integers(3, 6))
def test_more_devices_never_hurt_first_in_first_out_on_identical_jobs(n_jobs, n, seconds, devices):
    jobs = [job(f"job{place}", submit_s=7 * place, seconds=seconds, n=n, restart_s=1) for place in range(n_jobs)]
    fewer, more = (simulate(jobs, devices=size) for size in (devices, devices + 1))
    assert (more.completions_s <= fewer.completions_s + 1e-9).all()


def test_a_job_that_tiresias_demoted_waits_while_newcomers_fill_the_cluster():
    """After 16 device-hours the long one gives way for good: there is always a newcomer in the first queue."""
    long = job("long", seconds=20 * 3600, n=1)
    stream = [job(f"new{n}", submit_s=15 * 3600 + 3600 * n, seconds=3600, n=1) for n in range(30)]
    schedule = simulate([long, *stream], "tiresias", devices=1)
    ended = next(record for record in schedule.jobs if record.name == "long")
    assert ended.finish_s == max(record.finish_s for record in schedule.jobs) == (20 + 30) * 3600


@pytest.mark.parametrize("policy", ONE_TYPE)
@given(drawn=jobs_of_any_kind, seed=st.integers(0, 5), interval_s=st.sampled_from((0, 60)))
def test_with_failures_everyone_still_ends_and_nobody_is_on_a_node_that_is_down(policy, drawn, seed, interval_s):
    rules = Rules(interval_s=interval_s, failures=FAILING, seed=seed)
    schedule = simulate(built(drawn), policy, nodes=2, devices=4, rules=rules)
    assert np.isfinite(schedule.completions_s).all()
    clock = FailureClock(FAILING, 2, seed)
    while clock.next_s < schedule.makespan_s:
        at_s = clock.next_s
        node, is_up = clock.pop()
        if not is_up:
            there = [span for span in schedule.spans if any(where == node for where, _ in span.placement)]
            down_s = FAILING.repair_s
            assert not any(span.since_s < at_s + down_s - 1e-9 and span.until_s > at_s + 1e-9 for span in there)


@given(seconds=st.integers(50, 2000), seed=st.integers(0, 5))
def test_failures_never_make_a_lone_job_end_earlier(seconds, seed):
    lone = [job("a", seconds=seconds, restart_s=5)]
    failing = simulate(lone, devices=1, rules=Rules(interval_s=0, failures=FAILING, seed=seed))
    assert failing.makespan_s >= simulate(lone, devices=1).makespan_s - 1e-9


def test_a_lone_job_that_fails_repeats_what_came_after_its_checkpoint():
    failing = Failures(mean_between_s=300, repair_s=50, checkpoint_s=30)
    schedule = simulate([job("a", seconds=2000)], devices=1, rules=Rules(interval_s=0, failures=failing, seed=1))
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
    errors = ForecastErrors([0.5] * 3, speed_sigma=0.5, seed=1)
    by_count = errors.apply(2, np.ones(4))
    assert errors.factor(2, 3) == pytest.approx(by_count[3])
    assert errors.apply(2, np.ones(9))[:4] == pytest.approx(by_count)
