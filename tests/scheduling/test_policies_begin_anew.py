"""What a policy remembers belongs to one run."""

import pytest
from small_cluster import ONE_TYPE, equal_nodes, job, server_job, state_of

import traincast as tc
from traincast.scheduling.decision import NEVER
from traincast.scheduling.policies.gavel import Gavel
from traincast.scheduling.policies.online_optimus import OnlineOptimus
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.policies.tiresias import Tiresias
from traincast.scheduling.simulator import Rules, simulate_policy

STREAM = [job(f"job{n}", 400.0 * n, 3000 + 500 * (n % 3), n=1 + n % 3, most=4, restart_s=30) for n in range(8)]
SERVED = [server_job(f"job{n}", 100.0 * n, 300.0 + 200 * n) for n in range(3)]


def jobs_for(policy):
    return SERVED if policy == "optimus-online" else STREAM


@pytest.mark.parametrize("name", POLICIES)
def test_one_object_gives_the_same_schedule_twice(name):
    policy = make_policy(name)
    first, second = (tc.simulate(jobs_for(name), "2x4xGPU", policy=policy) for _ in range(2))
    assert first.spans == second.spans


@pytest.mark.parametrize("name", POLICIES)
def test_a_simulation_leaves_its_policy_as_it_was(name):
    """Its next decision is that of a new one: the scheduler of real jobs plans with the policy it then uses."""
    jobs, machines = jobs_for(name), equal_nodes(2, 4)
    policy = make_policy(name)
    simulate_policy(jobs, machines, policy)
    state = state_of(jobs, machines, adapts_batch=policy.adapts_batch)
    fresh = make_policy(name)
    assert policy.decide(state) == fresh.decide(state)
    assert policy.wakes_s(state) == fresh.wakes_s(state)


@pytest.mark.parametrize("name", ONE_TYPE)
def test_a_used_policy_made_fresh_decides_like_a_new_one(name):
    machines = equal_nodes(2, 4)
    used = make_policy(name)
    state = state_of(STREAM, machines, adapts_batch=used.adapts_batch)
    state.now_s = 90_000.0
    used.decide(state)
    fresh, new = used.fresh(0), make_policy(name)
    state.now_s = 0.0
    assert fresh.decide(state) == new.decide(state)
    assert fresh.wakes_s(state) == new.wakes_s(state)


def test_a_fresh_policy_keeps_its_settings():
    assert Tiresias(thresholds_device_s=(7.0,)).fresh(0).thresholds_device_s == (7.0,)
    assert Gavel(round_s=60.0).fresh(0).round_s == 60.0
    assert make_policy("traincast-batch").fresh(0).adapts_batch


def test_another_seed_gives_another_schedule_where_something_is_random():
    machines = equal_nodes(2, 4)

    def spans(jobs, policy, seed, sigma=0.0):
        return simulate_policy(jobs, machines, make_policy(policy), Rules(work_sigma=sigma, seed=seed)).spans

    assert spans(STREAM, "srtf", 0, 2.0) != spans(STREAM, "srtf", 1, 2.0)
    assert spans(SERVED, "optimus-online", 0) != spans(SERVED, "optimus-online", 1)
    assert spans(STREAM, "srtf", 0) == spans(STREAM, "srtf", 1)


def test_a_policy_that_observes_with_noise_is_compared_over_seeds():
    from traincast.api.simulating import simulate_many

    (outcome,) = simulate_many(SERVED, "2x4xGPU", ["optimus-online"], n_seeds=3).outcomes
    assert len(set(outcome.by_seed["mean_completion_s"])) == 3


def test_a_job_that_still_restarts_shows_no_speed():
    """With a restart of ten minutes a training makes no step in the first nine looks."""
    policy, machines = OnlineOptimus().fresh(0), equal_nodes(2, 4)
    state = state_of([server_job(restart_s=600)], machines)
    policy.decide(state)
    n_trials = len(policy._models[0].losses)
    state.start(0, ((0, 2),), 1)
    for minute in range(1, 13):
        state.now_s = 60.0 * minute
        policy.decide(state)
    assert len(policy._models[0].losses) - n_trials == 2
    assert policy.wakes_s(state) < NEVER
