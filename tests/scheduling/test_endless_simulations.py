"""A simulation in which nothing gets further ends with a sentence."""

import pytest
from small_cluster import AT_ONCE, Told, equal_nodes, job, server_job, simulate

from traincast.errors import InputError
from traincast.scheduling.decision import EVERY_TIME, Decision
from traincast.scheduling.failures import Failures
from traincast.scheduling.patience import MOST_EVENTS, Patience
from traincast.scheduling.policies.online_optimus import OnlineOptimus
from traincast.scheduling.simulator import Rules, simulate_policy


def test_a_policy_that_starts_nobody_is_told():
    with pytest.raises(InputError, match="'told' never starts job 'a'"):
        simulate_policy([job("a")], equal_nodes(1, 4), Told(lambda _: Decision({})), AT_ONCE)


@pytest.mark.parametrize("failures", [None, Failures(mean_between_s=50, repair_s=50)])
def test_a_policy_that_wants_to_be_asked_again_and_starts_nobody_is_told(failures):
    policy = Told(lambda _: Decision({}), wakes=EVERY_TIME)
    with pytest.raises(InputError, match="'told' never starts job 'a'"):
        simulate_policy([job("a")], equal_nodes(1, 4), policy, Rules(failures=failures))


@pytest.mark.parametrize("policy", ["fifo", "optimus", "traincast"])
def test_failures_that_always_come_before_the_first_checkpoint_are_told(policy):
    rules = Rules(
        failures=Failures(mean_between_s=10, repair_s=60)
    )  # a restart takes 30 s, a checkpoint comes after 600
    with pytest.raises(InputError, match=f"No job gets further on '1x4xGPU' under '{policy}': 'a' and others lost"):
        simulate([job("a", seconds=3600, restart_s=30)], policy, rules=rules)


def test_a_job_for_more_nodes_than_ever_work_at_once_is_told():
    rules = Rules(interval_s=0, failures=Failures(mean_between_s=60, repair_s=1800))
    with pytest.raises(InputError, match="No job gets further on '40x1xGPU'"):
        simulate([job("a", n=40)], nodes=40, devices=1, rules=rules)


def test_a_policy_that_moves_a_job_before_its_restart_is_over_is_told():
    def other_node(state):
        now = state.placed.get(0, ((0, 1),))[0][0]
        return Decision({0: ((1 - now, 1),)})

    policy = Told(other_node, wakes=EVERY_TIME)
    with pytest.raises(InputError, match="No job gets further"):
        simulate_policy([job("a", restart_s=90)], equal_nodes(2, 1), policy, Rules(interval_s=60))


def test_rare_failures_are_lived_through():
    rules = Rules(failures=Failures(mean_between_s=900))
    schedule = simulate([job("a", seconds=36_000, restart_s=30)], rules=rules)
    assert schedule.n_failures > 20


def test_more_events_than_memory_is_for_are_told():
    patience = Patience("optimus", "1x4xGPU", 2)
    patience.remembers(MOST_EVENTS, 6e8)
    with pytest.raises(InputError, match=r"After 600,000,000 s there were more than 10,000,000 decisions"):
        patience.remembers(MOST_EVENTS + 1, 6e8)


def test_years_of_jobs_whose_models_are_fitted_at_each_decision_are_refused_at_once():
    """On 2 places a step takes 8.41 s: two jobs of 10 million steps are 168.2 million s, 2,803,333 times 60 s."""
    jobs = [server_job("a", n_steps=1e7, most=2), server_job("b", n_steps=1e7, most=2)]
    words = r"about 2,803,333 fits, .* 25,000 at most: 'a' alone takes 84,100,000 s\. An interval from 6,728 s on"
    with pytest.raises(InputError, match=words):
        simulate(jobs, "optimus-online", rules=Rules())


def test_more_fits_than_were_foreseen_end_with_a_sentence():
    """Of 4 places each of two jobs has 2 and takes 421 s, twice as long as alone on all of them."""
    policy = OnlineOptimus(most_fits=60)
    jobs = [server_job("a", n_steps=50.0, restart_s=0.0), server_job("b", n_steps=50.0, restart_s=0.0)]
    with pytest.raises(InputError, match="s 'optimus-online' had fitted models of jobs more than 60 times: a longer"):
        simulate_policy(jobs, equal_nodes(1, 4), policy, Rules(interval_s=10))
