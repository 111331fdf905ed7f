"""Whole decisions of policies on tiny clusters, against all that could be decided."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import equal_nodes, job, server_job, state_of

import traincast.api.simulating as api
from traincast.errors import InputError
from traincast.scheduling.job import Job
from traincast.scheduling.policies.elastic import Elastic
from traincast.scheduling.policies.online_optimus import OnlineOptimus, trials_on
from traincast.scheduling.policies.optimus import Optimus
from traincast.scheduling.policies.pollux import Goodput
from traincast.scheduling.profile import CountProfile
from traincast.scheduling.simulator import Rules, simulate_policy

N_DEVICES = 5
some_jobs = st.lists(st.tuples(st.integers(10, 1000), st.sampled_from((0.5, 0.8, 1.0))), min_size=1, max_size=3)


def built(drawn):
    return [
        job(f"job{n}", seconds=seconds, most=N_DEVICES, exponent=exponent, restart_s=30)
        for n, (seconds, exponent) in enumerate(drawn)
    ]


def counts_of(decision, n_jobs):
    return [sum(n for _, n in decision.placements.get(one, ())) for one in range(n_jobs)]


def splits(n_jobs, least):
    """All ways to give out the devices."""
    counts = range(least, N_DEVICES + 1)
    return (split for split in itertools.product(counts, repeat=n_jobs) if sum(split) <= N_DEVICES)


@given(drawn=some_jobs)
def test_optimus_decides_on_the_smallest_sum_of_remaining_times(drawn):
    state = state_of(built(drawn), equal_nodes(1, N_DEVICES))
    left = [state.remaining_s(one, "GPU") for one in range(len(drawn))]
    decided = counts_of(Optimus().decide(state), len(drawn))
    best = min(sum(one[n] for one, n in zip(left, split, strict=True)) for split in splits(len(drawn), 1))
    assert sum(one[n] for one, n in zip(left, decided, strict=True)) == pytest.approx(best)


@given(drawn=some_jobs)
def test_ours_decides_on_the_largest_sum_of_worth(drawn):
    """Worth is concave for these jobs but for the restart, the same for every count of one that waits."""
    state, ours = state_of(built(drawn), equal_nodes(1, N_DEVICES)), Elastic(reluctance=0.0)
    worth = [ours.worth(state, one, "GPU") for one in range(len(drawn))]
    decided = counts_of(ours.decide(state), len(drawn))
    best = max(sum(one[n] for one, n in zip(worth, split, strict=True)) for split in splits(len(drawn), 0))
    assert sum(one[n] for one, n in zip(worth, decided, strict=True)) == pytest.approx(best)


@given(drawn=some_jobs)
def test_pollux_decides_on_the_best_fitness_after_a_first_device(drawn):
    """From one device each it may double: the harmonic mean of speed-ups is the largest that can be had."""
    jobs = built(drawn)
    state, policy = state_of(jobs, equal_nodes(1, N_DEVICES)), Goodput()
    assert counts_of(policy.decide(state), len(jobs)) == [1] * len(jobs)
    decided = counts_of(policy.decide(state), len(jobs))
    seconds = [state.segment_s(one, "GPU") for one in range(len(jobs))]

    def slowness(split):  # the reciprocal of the fitness, but for constants of each job's fair share
        fair = -(-N_DEVICES // len(jobs))
        return sum(one[n] / one[min(fair, len(one) - 1)] for one, n in zip(seconds, split, strict=True))

    allowed = [split for split in splits(len(jobs), 1) if max(split) <= 2]
    assert slowness(decided) == pytest.approx(min(map(slowness, allowed)), rel=0.01)


def test_pollux_keeps_a_young_job_where_it_is_and_moves_an_old_one():
    """Of an age of 60 s, three restarts of 20 s leave nothing: any change is worth nothing."""
    state = state_of([job("a", seconds=1000, most=4, restart_s=20)], equal_nodes(1, 4), adapts_batch=True)
    policy = Goodput()
    state.start(0, ((0, 2),), 0)
    policy._had[0] = 2
    state.n_starts[0] = 4
    state.now_s = 60.0
    assert counts_of(policy.decide(state), 1) == [2]
    state.now_s = 600.0
    assert counts_of(policy.decide(state), 1) == [4]


def test_more_shortness_prefers_the_short_job():
    """One device for a short and a long job; the long one gains four times as much from it in device-hours saved."""
    jobs = [job("long", seconds=1000), job("short", seconds=100)]
    state = state_of(jobs, equal_nodes(1, 1))
    long, short = (Elastic(shortness=0.5).worth(state, one, "GPU")[1] for one in range(2))
    assert short == pytest.approx(10**0.5 * long)
    long, short = (Elastic(shortness=0.0, reluctance=0.0).worth(state, one, "GPU")[1] for one in range(2))
    assert short == pytest.approx(long)


def test_more_reluctance_keeps_a_job_where_it_is():
    """Two devices instead of one save 50 of 100 s; a restart of 30 s counted twice costs more than that."""
    state = state_of([job("a", seconds=100, most=2, restart_s=30)], equal_nodes(1, 2))
    state.start(0, ((0, 1),), 0)
    state.now_s = 30.0
    assert counts_of(Elastic(reluctance=1.0).decide(state), 1) == [2]
    assert counts_of(Elastic(reluctance=2.0).decide(state), 1) == [1]


def test_a_job_with_nothing_left_by_rounding_is_still_worth_a_device():
    """Its last step was told, its end was not: it has to be started once more to finish."""
    state = state_of([job("a", seconds=100, most=2), job("b", seconds=100, most=2)], equal_nodes(1, 3))
    state._positions[0] = 1.0
    worth = Elastic().worth(state, 0, "GPU")
    assert (worth[1:] > 0).all()
    assert np.isfinite(worth).all()
    assert counts_of(Elastic().decide(state), 2)[0] >= 1


def test_jobs_with_servers_begin_with_a_worker_and_a_server():
    jobs = [server_job(f"job{n}") for n in range(3)]
    state = state_of(jobs, equal_nodes(1, N_DEVICES))
    decided = counts_of(Optimus().decide(state), 3)
    assert sorted(decided) == [0, 2, 3]
    for one in range(3):
        assert state.remaining_s(one, "GPU")[:2].tolist() == [np.inf, np.inf]


def test_trials_fit_on_the_cluster():
    assert trials_on(100)[:3] == [(1, 1), (1, 2), (2, 1)]
    assert max(map(sum, trials_on(4))) == 4
    assert len(set(trials_on(4))) == 6
    with pytest.raises(InputError, match="at least 4 places, and there are 3"):
        simulate_policy([server_job()], equal_nodes(1, 3), OnlineOptimus(), Rules())


def test_a_cluster_too_small_for_a_worker_and_a_server_is_told():
    with pytest.raises(InputError, match="asks for 2 devices, but '1x1xGPU' has only 1"):
        api.simulate([server_job()], "1x1xGPU", policy="traincast")
    with pytest.raises(InputError, match="it should be a whole number, at least 2"):
        Job(name="a", submit_s=0, profile=server_job().profile, n_devices=1)


def test_a_segment_of_no_time_is_told():
    class Instant(CountProfile):
        def segment_s(self, shape, kind, n_servers):
            return np.array([10.0, 0.0])

    lone = Job(name="a", submit_s=0, profile=Instant(name="instant", seconds={"GPU": (1.0,)}), n_devices=1)
    with pytest.raises(InputError, match=r"'instant' takes 0.0 s on \(1,\): it should be finite and above 0"):
        api.simulate([lone], "1xGPU", policy="fifo")
