"""Clusters of several types: who is where, and what forecasts have to do with it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import AT_ONCE, job, simulate, state_of

from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.drf import DominantFairness
from traincast.scheduling.policies.gavel import Gavel, max_min_shares
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.profile import CountProfile
from traincast.scheduling.simulator import Rules, simulate_policy

BOTH = find_machines("1x4xT4+1x4xV100")


def counts_of(decision):
    return {one: sum(n for _, n in placement) for one, placement in decision.placements.items()}


def test_two_jobs_that_run_on_both_types_have_one_each():
    decision = DominantFairness().decide(state_of([job("a", most=8), job("b", most=8)], BOTH))
    assert counts_of(decision) == {0: 4, 1: 4}


def test_small_jobs_share_the_type_that_the_large_one_is_not_on():
    jobs = [job("large", most=8), *(job(f"small{n}") for n in range(4))]
    assert counts_of(DominantFairness().decide(state_of(jobs, BOTH))) == {0: 4, 1: 1, 2: 1, 3: 1, 4: 1}


def test_who_runs_on_one_type_alone_has_it_before_who_has_the_choice():
    only = Job(name="only", submit_s=0, profile=CountProfile(name="t4", seconds={"T4": (9.0,) * 4}), n_devices=1)
    decision = DominantFairness().decide(state_of([job("any", most=4), only], BOTH))
    assert counts_of(decision) == {0: 4, 1: 4}
    assert decision.placements[1] == ((0, 4),)


@given(most=st.lists(st.integers(1, 8), min_size=1, max_size=10))
def test_under_fairness_no_device_is_idle_while_a_job_that_runs_there_has_none(most):
    jobs = [job(f"job{n}", most=limit) for n, limit in enumerate(most)]
    counts = counts_of(DominantFairness().decide(state_of(jobs, BOTH)))
    assert sum(counts.values()) == 8 or len(counts) == len(jobs)


def test_gavel_believes_forecasts_and_is_hurt_by_wrong_ones():
    """Each of many jobs is twice as fast on one of two types. Wrong forecasts send some of them to the other."""
    quick = CountProfile(name="quick", seconds={"T4": (1200.0,), "V100": (600.0,)})
    other = CountProfile(name="other", seconds={"T4": (600.0,), "V100": (1200.0,)})
    jobs = [Job(name=f"job{n}", submit_s=0, profile=(quick, other)[n % 2], n_devices=1, restart_s=0) for n in range(8)]
    exact = simulate_policy(jobs, BOTH, Gavel(), AT_ONCE).mean_completion_s
    wrong = [
        simulate_policy(jobs, BOTH, Gavel(), Rules(interval_s=0, speed_sigma=2.0, seed=seed)).mean_completion_s
        for seed in range(3)
    ]
    assert exact == pytest.approx(600)
    assert min(wrong) > 1.1 * exact


@given(
    speeds=st.lists(st.tuples(st.floats(0.5, 4), st.floats(0.5, 4)), min_size=2, max_size=2),
    there=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_shares_equal_the_best_of_all_that_were_tried(speeds, there):
    """Two jobs of one device on two types, in steps of a twentieth."""
    table = np.array(speeds)
    shares = max_min_shares(table, [1, 1], there)
    equal = table @ (np.array(there) / sum(there))
    reached = ((shares * table).sum(axis=1) / equal).min()
    steps = np.linspace(0, 1, 21)
    tried = np.array([pair for pair in itertools.product(steps, repeat=2) if sum(pair) <= 1 + 1e-9])
    first, second = ((tried * own).sum(axis=1) / fair for own, fair in zip(table, equal, strict=True))
    fits = (tried[:, None] + tried[None] <= np.array(there) + 1e-9).all(axis=2)
    best = np.minimum(first[:, None], second[None])[fits].max()
    assert best - 1e-6 <= reached <= 1.15 * best


def test_a_round_lasts_though_a_job_comes():
    """The first has the only device for six minutes, and the newcomer of minute two has its turn then."""
    jobs = [job("a", seconds=2000), job("b", submit_s=120, seconds=2000)]
    schedule = simulate(jobs, "gavel", devices=1, rules=Rules(interval_s=60))
    assert schedule.jobs[1].start_s == 360
    assert schedule.spans[0].until_s == 360


def test_what_comes_free_within_a_round_is_given_out_at_once():
    jobs = [job("a", seconds=90), job("b", submit_s=60, seconds=500)]
    schedule = simulate(jobs, "gavel", devices=1, rules=Rules(interval_s=60))
    assert schedule.jobs[1].start_s == 120


def test_shorter_rounds_change_who_runs_more_often():
    jobs = [job("a", seconds=2000, restart_s=5), job("b", seconds=2000, restart_s=5)]
    machines = find_machines("1xGPU")
    slow, quick = (simulate_policy(jobs, machines, Gavel(round_s=s), Rules(interval_s=60)) for s in (600.0, 120.0))
    assert quick.n_restarts > 2 * slow.n_restarts


def test_debts_of_jobs_that_ended_are_forgotten():
    policy = Gavel()
    state = state_of([job("a"), job("b")], find_machines("1xGPU"))
    policy.decide(state)
    del state.active[0]
    state.now_s = 60.0
    policy.decide(state)
    assert {number for number, _ in policy._owed_s} == {1}


@pytest.mark.parametrize("policy", ["fifo", "srtf", "tiresias"])
def test_the_type_that_is_forecast_to_be_faster_is_taken(policy):
    profile = CountProfile(name="both", seconds={"T4": (30.0,), "V100": (10.0,)})
    lone = [Job(name="a", submit_s=0, profile=profile, n_devices=1, restart_s=0)]
    times = {
        simulate_policy(lone, BOTH, make_policy(policy), Rules(interval_s=0, speed_sigma=3.0, seed=n)).makespan_s
        for n in range(6)
    }
    assert times == {10.0, 30.0}
