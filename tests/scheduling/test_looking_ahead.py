"""Where nothing happens for long, a policy is not asked in vain, and what comes out is the same to the last bit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cluster import Told, equal_nodes, job, server_job, simulate, state_of, tiny_application

from traincast.errors import InputError
from traincast.scheduling.decision import EVERY_TIME
from traincast.scheduling.failures import Failures
from traincast.scheduling.job import Job
from traincast.scheduling.policies.optimus import Optimus
from traincast.scheduling.profile import TrainingProfile
from traincast.scheduling.simulator import Rules, simulate_policy

YEARS_S = 1e8


ASKED_EACH_TIME = Told(Optimus().decide, wakes=EVERY_TIME)  # without its foresight


def outcome(jobs, machines, policy, rules):
    """All there is to know of it; decisions that change nothing are looked at once."""
    schedule = simulate_policy(jobs, machines, policy, rules)
    levels = [moment[1:] for moment in schedule.moments]
    changes = [one for before, one in zip([None, *levels], levels, strict=False) if one != before]
    return schedule.jobs, schedule.spans, changes, schedule.n_failures


jobs_of_all_lengths = st.lists(
    st.tuples(
        st.integers(0, 5_000), st.sampled_from((200, 3_000, 20_000, 90_000)), st.integers(1, 3), st.integers(0, 5),
        st.sampled_from((0.3, 0.8, 1.0)), st.sampled_from((0.0, 30.0)),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@settings(max_examples=40)
@given(jobs_of_all_lengths, st.sampled_from((3, 7)), st.sampled_from((0.0, 60.0)), st.sampled_from((0.0, 0.5)))
def test_plain_jobs_end_when_they_did_with_a_decision_at_each_interval(drawn, n_devices, interval_s, sigma):
    jobs = [
        job(f"job{number}", submit_s, seconds, n, n + more, exponent, restart_s)
        for number, (submit_s, seconds, n, more, exponent, restart_s) in enumerate(drawn)
    ]
    rules = Rules(interval_s=interval_s, work_sigma=sigma, speed_sigma=sigma, seed=3)
    machines = equal_nodes(1, n_devices)
    assert outcome(jobs, machines, Optimus(), rules) == outcome(jobs, machines, ASKED_EACH_TIME, rules)


def test_trainings_of_several_epochs_and_failing_nodes_make_no_difference():
    profile = TrainingProfile(tiny_application(), 8)
    jobs = [
        Job(name=f"job{n}", submit_s=100.0 * n, profile=profile, n_devices=1, length=20.0 + 7 * n) for n in range(5)
    ]
    rules = Rules(failures=Failures(mean_between_s=4_000, repair_s=600, checkpoint_s=300), seed=1)
    machines = equal_nodes(2, 2)
    assert outcome(jobs, machines, Optimus(), rules) == outcome(jobs, machines, ASKED_EACH_TIME, rules)


def test_jobs_with_servers_make_no_difference():
    jobs = [
        server_job("a", n_steps=60_000.0),
        server_job("b", 500.0, 30_000.0, (1, 2)),
        server_job("c", 900.0, 9_000.0),
    ]
    rules, machines = Rules(), equal_nodes(2, 4)
    assert outcome(jobs, machines, Optimus(), rules) == outcome(jobs, machines, ASKED_EACH_TIME, rules)


def test_two_jobs_of_years_need_few_decisions():
    jobs = [job("a", 0, YEARS_S, 2, 4, 0.8), job("b", 600, YEARS_S, 2, 4, 0.8)]
    schedule = simulate(jobs, "optimus", rules=Rules())
    assert len(schedule.moments) < 1000
    assert [record.finish_s for record in schedule.jobs] == pytest.approx([YEARS_S, YEARS_S], rel=0.01)


def test_the_answer_is_kept_until_gains_cross():
    """On 3 devices a has 2: its gain of the second, A/2, falls to that of b, B/2, when 300 - 2 t is 200."""
    jobs = [job("a", seconds=300, most=2), job("b", seconds=200, most=2)]
    state = state_of(jobs, equal_nodes(1, 3))
    state.start(0, ((0, 2),), 0)
    state.start(1, ((0, 1),), 0)
    # a: 300 s on one device, twice as fast on two; b goes on at the speed of one
    crossing_s = 100.0  # where 300 - 2 t = 200 - t
    assert Optimus().keeps_until_s(state) == pytest.approx(crossing_s, rel=1e-5)
    assert Optimus().keeps_until_s(state) < crossing_s


def test_jobs_that_change_places_for_ever_are_told():
    """One device too few for two equal jobs of years: whoever has it comes nearer to its end, and gives it up."""
    jobs = [job("a", 0, YEARS_S, 2, 4, 0.8), job("b", 0, YEARS_S, 2, 4, 0.8)]
    with pytest.raises(InputError, match=r"'optimus' had taken devices from running jobs more than 20,000 times"):
        simulate(jobs, "optimus", devices=3, rules=Rules())
