"""On tiny clusters every choice can be tried: policies find the best one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import job, simulate

from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.placing import evenly_on_fewest
from traincast.scheduling.policies.drf import fill
from traincast.scheduling.policies.elastic import concave_hull, divide_by_hull
from traincast.scheduling.policies.gavel import max_min_shares
from traincast.scheduling.policies.online_optimus import marginal_gains, steps_to_loss
from traincast.scheduling.policies.optimus import marginal_gain


def splits(n_jobs, n_devices, least):
    return (
        counts for counts in itertools.product(range(least, n_devices + 1), repeat=n_jobs) if sum(counts) <= n_devices
    )


def falling(work, exponent, n_most):
    """Seconds until the end with 0, 1, ... devices: gains that get smaller."""
    return np.array([np.inf, *(work / n**exponent for n in range(1, n_most + 1))])


@given(
    jobs=st.lists(st.tuples(st.floats(1, 1000), st.floats(0.1, 1)), min_size=1, max_size=3), n_devices=st.integers(3, 6)
)
def test_marginal_gains_find_the_smallest_sum_of_remaining_times(jobs, n_devices):
    remaining = {place: falling(work, exponent, n_devices) for place, (work, exponent) in enumerate(jobs)}
    counts = marginal_gain(remaining, n_devices - len(jobs), dict.fromkeys(remaining, 1))
    best = min(
        sum(remaining[place][n] for place, n in enumerate(split)) for split in splits(len(jobs), n_devices, least=1)
    )
    assert sum(remaining[place][n] for place, n in counts.items()) == pytest.approx(best)


def test_marginal_gains_stop_before_a_device_that_gains_nothing():
    bump = np.array([np.inf, 100.0, 50.0, 60.0, 20.0])  # the third device is on a second node
    assert marginal_gain({0: bump}, 3, {0: 1}) == {0: 2}


def test_a_hull_steps_over_a_device_that_gains_nothing():
    bump = 1 / np.array([np.inf, 100.0, 50.0, 60.0, 20.0])
    assert concave_hull(bump) == [0, 4]
    assert divide_by_hull({0: bump}, 4) == {0: 4}
    assert divide_by_hull({0: bump}, 3) == {0: 2}


@given(
    jobs=st.lists(st.lists(st.floats(0.01, 10), min_size=6, max_size=6), min_size=1, max_size=3),
    n_devices=st.integers(1, 6),
)
def test_hulls_find_the_largest_sum_of_concave_worths(jobs, n_devices):
    worth = {place: np.concatenate([[0.0], np.cumsum(sorted(steps)[::-1])]) for place, steps in enumerate(jobs)}
    counts = divide_by_hull(worth, n_devices)
    assert sum(counts.values()) <= n_devices
    best = max(sum(worth[place][n] for place, n in enumerate(split)) for split in splits(len(jobs), n_devices, least=0))
    assert sum(worth[place][n] for place, n in counts.items()) == pytest.approx(best)


@given(
    jobs=st.lists(st.lists(st.floats(0.0, 10), min_size=6, max_size=6), min_size=1, max_size=3),
    n_devices=st.integers(1, 6),
)
def test_hulls_never_give_out_more_than_there_is_nor_a_device_that_harms(jobs, n_devices):
    worth = {place: np.array([0.0, *values]) for place, values in enumerate(jobs)}
    counts = divide_by_hull(worth, n_devices)
    assert sum(counts.values()) <= n_devices
    assert all(worth[place][n] >= 0 for place, n in counts.items())


@given(seconds=st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_shortest_first_has_the_smallest_mean_of_all_orders_on_one_device(seconds):
    jobs = [job(f"job{place}", seconds=length) for place, length in enumerate(seconds)]
    best = min(np.cumsum(order).mean() for order in itertools.permutations(seconds))
    assert simulate(jobs, "srtf", devices=1).mean_completion_s == pytest.approx(best)


def test_dominant_fairness_of_the_papers_example():
    """9 CPU and 18 GB; tasks of 1 CPU and 4 GB, and of 3 CPU and 1 GB: 3 and 2 tasks (Ghodsi et al., Table 1)."""
    assert fill({0: (1, 4), 1: (3, 1)}, (9, 18), {0: 99, 1: 99}) == {0: 3, 1: 2}


@given(most=st.lists(st.integers(1, 6), min_size=1, max_size=3), n_devices=st.integers(1, 6))
def test_one_resource_is_shared_max_min(most, n_devices):
    counts = fill({user: (1.0,) for user in range(len(most))}, (n_devices,), dict(enumerate(most)))
    fairest = max(
        sorted(split)
        for split in splits(len(most), n_devices, least=0)
        if all(n <= limit for n, limit in zip(split, most, strict=True))
    )
    assert sorted(counts.values()) == fairest


def test_shares_of_two_types_go_to_who_gains_most_from_them():
    """Both jobs want the fast type; the one that gains less from it is consoled with time on the slow one."""
    speeds = np.array([[4.0, 1.0], [2.0, 1.0]])
    shares = max_min_shares(speeds, [1, 1], [1, 1])
    equal = speeds.mean(axis=1)
    reached = (shares * speeds).sum(axis=1) / equal
    tried = np.linspace(0, 1, 101)
    best = max(
        min((4 * x + (1 - x)) / equal[0], (2 * (1 - x) + x) / equal[1]) for x in tried
    )  # each on one of them at any time
    assert reached.min() == pytest.approx(best, abs=0.02)
    assert reached[0] == pytest.approx(reached[1])


@given(steps=st.lists(st.floats(10, 1000), min_size=1, max_size=2), n_places=st.integers(4, 7))
def test_workers_and_servers_by_gains_find_the_smallest_sum_where_gains_fall(steps, n_places):
    speed = SpeedModel(mode="sync", theta=(1.0, 0.1, 0.2, 0.0, 0.0), batch_size=8)
    remaining = dict(enumerate(steps))
    counts = marginal_gains(remaining, dict.fromkeys(remaining, speed), dict.fromkeys(remaining, 99), n_places)
    pairs = [(p, w) for p in range(1, n_places) for w in range(1, n_places) if p + w <= n_places]

    def total_s(chosen):
        return sum(remaining[j] / float(speed.steps_per_s(p, w)) for j, (p, w) in enumerate(chosen))

    best = min(
        total_s(chosen) for chosen in itertools.product(pairs, repeat=len(steps)) if sum(map(sum, chosen)) <= n_places
    )
    assert total_s([counts[j] for j in range(len(steps))]) <= 1.05 * best


def test_an_exact_curve_is_followed_to_its_target():
    losses = [(step, 1 / (0.01 * step + 0.5) + 0.1) for step in range(0, 200, 10)]
    assert steps_to_loss(losses, 0.3, 500.0) == pytest.approx(450, rel=0.01)
    assert steps_to_loss(losses, 0.05, 77.0) == 77.0  # below where the curve ends


@pytest.mark.parametrize(
    ("free", "n", "taken"),
    [([4, 4, 4], 4, {4}), ([4, 4, 4], 6, {3}), ([4, 1, 4], 8, {4}), ([2, 1, 4], 7, {1, 2, 4}), ([4, 4, 4], 9, {3})],
)
def test_places_lie_evenly_on_the_fewest_nodes(free, n, taken):
    left = list(free)
    placement = evenly_on_fewest(left, n, range(len(free)))
    assert {count for _, count in placement} == taken
    assert sum(free) - sum(left) == n == sum(count for _, count in placement)
