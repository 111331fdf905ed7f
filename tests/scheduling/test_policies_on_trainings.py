"""What policies do with trainings: over a bump between nodes, with free batches, online, and over seeds."""

from dataclasses import replace

import numpy as np
import pytest
from small_cluster import ONE_TYPE, equal_nodes, job, server_job, tiny_application

import traincast.api.simulating as api
from traincast.errors import InputError
from traincast.scheduling.charts import completion_chart, devices_chart, gantt_chart, queue_chart
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.observations import NoisyMonitor
from traincast.scheduling.policies.online_optimus import OnlineOptimus
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.profile import CountProfile, ServersProfile, TrainingProfile, plain_profile
from traincast.scheduling.schedule import Moment
from traincast.scheduling.simulator import Rules, simulate_policy


def trainings(application, n_jobs=3, batch=16):
    fixed, free = TrainingProfile(application, batch), TrainingProfile(application, None)
    return [
        Job(name=f"job{place}", submit_s=30.0 * place, profile=fixed, n_devices=2, restart_s=10, adaptive=free)
        for place in range(n_jobs)
    ]


@pytest.mark.parametrize("policy", ONE_TYPE)
def test_every_policy_ends_all_trainings(policy):
    schedule = api.simulate(trainings(tiny_application()), equal_nodes(2, 2), policy=policy)
    assert np.isfinite(schedule.completions_s).all()
    assert schedule.policy == policy


def test_one_at_a_time_stops_at_a_node_where_a_hull_goes_on():
    """Three devices are slower than two, four are faster: marginal gains never get there."""
    seconds = (400.0, 200.0, 220.0, 100.0)
    profile = CountProfile(name="bump", seconds={"GPU": seconds})
    lone = [Job(name="a", submit_s=0, profile=profile, n_devices=2, restart_s=0)]
    assert api.simulate(lone, equal_nodes(2, 2), policy="optimus", interval_s=0).makespan_s == 200
    assert api.simulate(lone, equal_nodes(2, 2), policy="traincast", interval_s=0).makespan_s == 100


def test_ours_does_not_pay_a_restart_that_gains_less():
    profile = CountProfile(name="even", seconds={"GPU": (100.0, 99.0, 98.0, 97.0)})
    jobs = [
        Job(name="a", submit_s=0, profile=profile, n_devices=1, restart_s=30),
        Job(name="b", submit_s=0, profile=profile, n_devices=1, restart_s=30, length=0.3),
    ]
    assert api.simulate(jobs, equal_nodes(1, 4), policy="traincast").n_restarts == 0


def test_a_free_batch_ends_earlier_where_gradients_are_noisy():
    jobs = trainings(tiny_application(fixed_s=0.5, noise=50.0), batch=8)
    fixed, free = (
        api.simulate(jobs, equal_nodes(2, 2), policy=policy).mean_completion_s
        for policy in ("traincast", "traincast-batch")
    )
    assert free < 0.9 * fixed


def test_online_optimus_finishes_trainings_with_servers_and_workers():
    jobs = [server_job(f"job{place}", 100.0 * place, 300 + 200 * place) for place in range(4)]
    schedule = simulate_policy(jobs, equal_nodes(4, 4), OnlineOptimus(), Rules())
    assert np.isfinite(schedule.completions_s).all()
    assert all(sum(n for _, n in span.placement) >= 2 for span in schedule.spans)


def test_online_optimus_with_exact_observations_learns_how_much_remains():
    policy = OnlineOptimus(monitor=NoisyMonitor(sigma=0.0))
    schedule = simulate_policy([server_job()], equal_nodes(2, 4), policy, Rules())
    speed = server_job().profile.speed
    best_s = min(500 / float(speed.steps_per_s(p, w)) for p in range(1, 8) for w in range(1, 9 - p))
    assert schedule.makespan_s == pytest.approx(best_s + 10, rel=0.1)


def test_online_optimus_refuses_what_has_no_servers():
    with pytest.raises(InputError, match="trainings with parameter servers, but job 'a' has none"):
        api.simulate([job("a")], "4xGPU", policy="optimus-online")


def test_a_loss_that_never_falls_to_its_target_is_told():
    with pytest.raises(InputError, match="does not fall to"):
        ServersProfile(
            name="ps",
            speed=server_job().profile.speed,
            loss=(0.01, 0.5, 0.1),
            target_loss=0.1,
            expected_steps=1.0,
            max_devices=4,
        )


def test_gavel_gives_each_the_type_it_is_faster_on():
    one = CountProfile(name="one", seconds={"V100": (100.0,), "T4": (200.0,)})
    other = CountProfile(name="other", seconds={"V100": (300.0,), "T4": (150.0,)})
    jobs = [
        Job(name=name, submit_s=0, profile=profile, n_devices=1, restart_s=0)
        for name, profile in (("other", other), ("one", one))
    ]
    ended = {each.name: each.finish_s for each in api.simulate(jobs, find_machines("1xV100+1xT4"), policy="gavel").jobs}
    assert ended == {"one": 100, "other": 150}


def test_every_name_makes_its_policy():
    assert {name: make_policy(name).name for name in POLICIES} == {name: name for name in POLICIES}


def test_an_unknown_policy_is_told():
    with pytest.raises(InputError, match=r"There is no policy 'optimos'\. Did you mean 'optimus'"):
        make_policy("optimos")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interval_s": -1}, "interval_s cannot be -1: give a number of at least 0"),
        ({"work_error": -1}, "work_error cannot be -1: give a number of at least 0"),
        ({"speed_error": float("nan")}, "speed_error cannot be nan: give a number"),
        ({"failure_s": 0}, "failure_s cannot be 0: give a number above 0"),
        ({"failure_s": 10, "repair_s": 0}, "repair_s cannot be 0: give a number above 0"),
        ({"interval_s": "60"}, "interval_s cannot be '60': give a number"),
        ({"work_error": None}, "work_error cannot be None: give a number"),
        ({"failure_s": "often"}, "failure_s cannot be 'often': give a number"),
        ({"failure_s": 10**400}, r"^failure_s cannot be 10+\.\.\.: give a smaller number\.$"),
        ({"restart_s": "5"}, "restart_s cannot be '5': give a number"),
        ({"seed": 1.5}, "seed cannot be 1.5: give a whole number"),
    ],
)
def test_rules_that_cannot_be_are_told(options, words):
    with pytest.raises(InputError, match=words):
        api.simulate([job("a")], "4xGPU", policy="fifo", **options)


@pytest.mark.parametrize(
    ("jobs", "cluster", "policy", "words"),
    [
        (None, "4xGPU", "fifo", "jobs cannot be None: give a list of Jobs or text or a path"),
        ([1, 2], "4xGPU", "fifo", r"jobs cannot be \[1, 2\]"),
        ([job("a")], None, "fifo", "cluster cannot be None: give Machines or text"),
        ([job("a")], "4xGPU", 3, "policy cannot be 3: give text or a policy"),
    ],
)
def test_what_is_of_another_type_is_told(jobs, cluster, policy, words):
    with pytest.raises(InputError, match=words):
        api.simulate(jobs, cluster, policy=policy)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": None}, "A job's name should be text"),
        ({"submit_s": "0"}, "has a submission time of '0' s"),
        ({"profile": None}, "has the profile None"),
        ({"n_devices": "1"}, "asks for '1' devices"),
        ({"length": "long"}, "has the length 'long'"),
    ],
)
def test_a_job_of_other_types_is_told(wrong, words):
    right = {"name": "a", "submit_s": 0, "profile": plain_profile("a", 10, 1), "n_devices": 1}
    with pytest.raises(InputError, match=words):
        Job(**{**right, **wrong})


@pytest.mark.parametrize("wrong", [{"seconds": "x"}, {"n_devices": 0}, {"n_devices": "1"}, {"exponent": 2}])
def test_a_plain_profile_that_cannot_be_is_told(wrong):
    with pytest.raises(InputError, match="'a' needs"):
        plain_profile(**{"name": "a", "seconds": 10, "n_devices": 1, **wrong})


def test_a_policy_of_ones_own_is_used():
    assert api.simulate([job("a")], "4xGPU", policy=make_policy("srtf")).policy == "srtf"


def test_fairness_is_measured_against_the_job_as_submitted_whoever_schedules():
    jobs = trainings(tiny_application(fixed_s=0.5, noise=50.0), batch=8)
    fixed, free = (api.simulate(jobs, equal_nodes(2, 2), policy=name) for name in ("traincast", "traincast-batch"))
    assert [one.alone_s for one in fixed.jobs] == [one.alone_s for one in free.jobs]


def test_policies_are_compared_over_seeds():
    jobs = [job(f"job{place}", submit_s=10.0 * place, seconds=100 + 90 * (place % 4), n=2) for place in range(10)]
    compared = api.simulate_many(jobs, "4xGPU", ["srtf", "fifo"], work_error=1.0, n_seeds=5)
    srtf, fifo = compared.outcomes
    low, high = srtf.interval("mean_completion_s")
    assert low < srtf.mean("mean_completion_s") < high
    assert fifo.interval("mean_completion_s")[0] == fifo.mean("mean_completion_s")
    assert compared.to_dict()["policies"][0]["over_seeds"]["mean_completion_s"]["p10"] == low


def test_seeds_without_anything_random_are_told():
    with pytest.raises(InputError, match="nothing is random"):
        api.simulate_many([job("a")], "4xGPU", ["fifo"], n_seeds=3)
    with pytest.raises(InputError, match="at least one policy"):
        api.simulate_many([job("a")], "4xGPU", [])


def test_a_gantt_chart_has_a_bar_for_each_device_of_each_stay():
    jobs = [job("a", seconds=10, n=2), job("b", seconds=20, n=3)]
    schedule = api.simulate(jobs, "4xGPU", policy="fifo", interval_s=0)
    (series,) = gantt_chart(schedule).series
    assert series.y == [0, 0, None, 1, 1, None, 0, 0, None, 1, 1, None, 2, 2, None]
    assert series.x[:2] == [0, 10]
    assert series.text[0] == "a, node 0"


def test_the_queue_is_drawn_in_steps():
    jobs = [job("a", seconds=10, n=4), job("b", seconds=20, n=4)]
    schedule = api.simulate(jobs, "4xGPU", policy="fifo", interval_s=0)
    waiting, devices = queue_chart([schedule]).series[0], devices_chart([schedule]).series[0]
    assert (waiting.x, waiting.y) == ([0, 10, 10, 30, 30], [1, 1, 0, 0, 0])
    assert devices.y == [4, 4, 4, 4, 0]
    assert completion_chart([schedule]).series[0].y == [0.5, 1.0]


def test_the_longest_queue_is_drawn_however_many_moments_there_are():
    """Of 4,000 moments every third or so is drawn, and the peak lies in one moment."""
    schedule = api.simulate([job("a", seconds=10)], "4xGPU", policy="fifo", interval_s=0)
    moments = tuple(Moment(float(n), 99 if n == 2222 else 1, 1, 4) for n in range(4000))
    drawn = queue_chart([replace(schedule, moments=moments)]).series[0]
    assert max(drawn.y) == 99
    assert len(drawn.y) < 4000


def test_numbers_of_a_schedule_add_up():
    jobs = [job("a", seconds=10, n=4), job("b", seconds=20, n=4)]
    schedule = api.simulate(jobs, "4xGPU", policy="fifo", interval_s=0)
    assert (schedule.median_completion_s, schedule.mean_wait_s) == (20, 5)
    assert schedule.p99_completion_s == pytest.approx(29.8)
    assert schedule.fairness_fraction == pytest.approx((1 + 1.5) ** 2 / (2 * (1 + 1.5**2)))
    assert schedule.to_dict()["jobs"][1]["completion_s"] == 30
