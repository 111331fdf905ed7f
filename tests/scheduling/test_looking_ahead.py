"""Where nothing happens for long, a policy is not asked in vain, and what comes out is the same to the last bit."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from small_cluster import Told, equal_nodes, job, server_job, simulate, state_of, tiny_application

from traincast.errors import InputError
from traincast.scheduling.decision import EVERY_TIME
from traincast.scheduling.failures import Failures
from traincast.scheduling.job import Job
from traincast.scheduling.policies.elastic import divide_by_hull
from traincast.scheduling.policies.optimus import Optimus
from traincast.scheduling.policies.pollux import Goodput
from traincast.scheduling.policies.sure_division import Between, is_sure
from traincast.scheduling.profile import TrainingProfile
from traincast.scheduling.simulator import Rules, simulate_policy

YEARS_S = 1e8


def asked_each_time(policy):
    """Without its foresight."""
    return Told(policy.decide, wakes=EVERY_TIME, adapts_batch=policy.adapts_batch)


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
@given(
    jobs_of_all_lengths,
    st.sampled_from((1, 3, 7)),
    st.sampled_from((0.0, 60.0)),
    st.sampled_from((0.0, 0.5)),
    st.sampled_from((Optimus, Goodput)),
)
def test_plain_jobs_end_when_they_did_with_a_decision_at_each_interval(drawn, n_devices, interval_s, sigma, policy):
    jobs = [
        job(f"job{number}", submit_s, seconds, min(n, n_devices), n + more, exponent, restart_s)
        for number, (submit_s, seconds, n, more, exponent, restart_s) in enumerate(drawn)
    ]
    rules = Rules(interval_s=interval_s, work_sigma=sigma, speed_sigma=sigma, seed=3)
    machines = equal_nodes(1, n_devices)
    assert outcome(jobs, machines, policy(), rules) == outcome(jobs, machines, asked_each_time(policy()), rules)


@pytest.mark.parametrize("policy", [Optimus, Goodput])
def test_trainings_of_several_epochs_and_failing_nodes_make_no_difference(policy):
    profile, free = TrainingProfile(tiny_application(), 8), TrainingProfile(tiny_application(), None)
    jobs = [
        Job(name=f"job{n}", submit_s=100.0 * n, profile=profile, adaptive=free, n_devices=1, length=20.0 + 7 * n)
        for n in range(5)
    ]
    rules = Rules(failures=Failures(mean_between_s=4_000, repair_s=600, checkpoint_s=300), seed=1)
    machines = equal_nodes(2, 2)
    assert outcome(jobs, machines, policy(), rules) == outcome(jobs, machines, asked_each_time(policy()), rules)


def test_jobs_with_servers_make_no_difference():
    jobs = [
        server_job("a", n_steps=60_000.0),
        server_job("b", 500.0, 30_000.0, (1, 2)),
        server_job("c", 900.0, 9_000.0),
    ]
    rules, machines = Rules(), equal_nodes(2, 4)
    assert outcome(jobs, machines, Optimus(), rules) == outcome(jobs, machines, asked_each_time(Optimus()), rules)


@pytest.mark.parametrize("policy", ["optimus", "pollux"])
@pytest.mark.parametrize("restart_s", [0.0, 30.0])
def test_two_jobs_of_years_need_few_decisions(policy, restart_s):
    jobs = [job(name, submit_s, YEARS_S, 2, 4, 0.8, restart_s) for name, submit_s in (("a", 0), ("b", 600))]
    schedule = simulate(jobs, policy, rules=Rules())
    assert len(schedule.moments) < 1000
    assert [record.finish_s for record in schedule.jobs] == pytest.approx([YEARS_S, YEARS_S], rel=0.01)


def worths(draw):
    """Of a job: bounds by number of devices, which are fixed for some, and a choice between them."""
    low = [0.0, *draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))]
    more = [0, *draw(st.lists(st.sampled_from((0, 0, 0.25, 1)), min_size=len(low) - 1, max_size=len(low) - 1))]
    share = draw(st.lists(st.floats(0, 1), min_size=len(low), max_size=len(low)))
    high = [value + plus for value, plus in zip(low, more, strict=True)]
    middle = [a + part * (b - a) for a, b, part in zip(low, high, share, strict=True)]
    return [np.array(values) for values in (low, high, middle)]


@settings(max_examples=400)
@given(st.data(), st.integers(1, 6))
def test_worths_that_are_surely_divided_so_are(data, n_devices):
    """Small whole numbers, so that many pieces are equally steep."""
    drawn = [worths(data.draw) for _ in range(data.draw(st.integers(1, 4)))]
    counts = divide_by_hull({number: low for number, (low, _, _) in enumerate(drawn)}, n_devices)
    jobs = [Between(low, high, low == high, counts[number]) for number, (low, high, _) in enumerate(drawn)]
    if is_sure(jobs, n_devices, rounding=1e-11):
        event("sure")
        for place in (1, 2):
            assert divide_by_hull({number: one[place] for number, one in enumerate(drawn)}, n_devices) == counts


def test_a_division_may_change_where_pieces_may_cross():
    """One device for two: 3 and 2 cannot change places, 3 and between 2 and 4 can."""
    first, second = np.array([0.0, 3.0]), np.array([0.0, 2.0])
    fixed, free = np.array([True, True]), np.array([True, False])
    assert is_sure([Between(first, first, fixed, 1), Between(second, second, free, 0)], 1, rounding=1e-11)
    assert not is_sure([Between(first, first, fixed, 1), Between(second, second + 2, free, 0)], 1, rounding=1e-11)


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
