"""Schedules that can be checked in one's head."""

import numpy as np
import pytest
from small_cluster import AT_ONCE, ONE_TYPE, Told, ends, equal_nodes, job, simulate, tiny_application

from traincast.errors import InputError
from traincast.scheduling.decision import Decision
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.policies.rigid import Fifo
from traincast.scheduling.policies.tiresias import Tiresias
from traincast.scheduling.profile import CountProfile, TrainingProfile
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds


def test_one_after_the_other_on_one_device():
    schedule = simulate([job("a", seconds=10), job("b", seconds=20)], devices=1)
    assert ends(schedule) == {"a": 10, "b": 30}
    assert schedule.mean_completion_s == 20
    assert schedule.makespan_s == 30
    assert schedule.utilisation_fraction == 1


def test_decisions_come_at_intervals_and_a_start_takes_its_restart():
    schedule = simulate([job("a", submit_s=107, seconds=100, restart_s=30)], rules=Rules(interval_s=60))
    assert schedule.jobs[0].start_s == 120
    assert ends(schedule) == {"a": 250}
    assert schedule.restarting_fraction == pytest.approx(30 / 130)


def test_what_ends_between_decisions_frees_its_devices_at_the_next_one():
    jobs = [job("a", seconds=70), job("b", seconds=10)]
    assert ends(simulate(jobs, devices=1, rules=Rules(interval_s=60))) == {"a": 70, "b": 130}


def test_a_job_that_ends_exactly_at_a_decision_makes_room_in_it():
    jobs = [job("a", seconds=60), job("b", seconds=10)]
    assert ends(simulate(jobs, devices=1, rules=Rules(interval_s=60))) == {"a": 60, "b": 70}


def test_fifo_lets_nobody_pass_and_shortest_first_does():
    jobs = [job("long", seconds=100, n=1), job("wide", seconds=50, n=2), job("short", seconds=10, n=1)]
    assert ends(simulate(jobs, "fifo", devices=2)) == {"long": 100, "wide": 150, "short": 160}
    assert ends(simulate(jobs, "srtf", devices=2)) == {"short": 10, "wide": 60, "long": 150}


def test_shortest_first_takes_devices_from_the_longer_job():
    jobs = [job("long", seconds=100), job("short", submit_s=20, seconds=10)]
    schedule = simulate(jobs, "srtf", devices=1)
    assert ends(schedule) == {"short": 30, "long": 110}
    assert schedule.n_restarts == 1


def test_a_demoted_job_gives_way_and_takes_up_where_it_was():
    wide = job("wide", seconds=8 * 3600, n=4)
    late = job("late", submit_s=5 * 3600, seconds=60, n=4)
    schedule = simulate([wide, late], "tiresias", devices=4)  # demoted after 4 hours of 4 devices
    assert ends(schedule) == {"late": 5 * 3600 + 60, "wide": 8 * 3600 + 60}


def test_before_its_demotion_a_job_keeps_its_devices():
    wide = job("wide", seconds=8 * 3600, n=4)
    early = job("early", submit_s=3600, seconds=60, n=4)
    schedule = simulate([wide, early], "tiresias", devices=4)
    assert ends(schedule) == {"early": 4 * 3600 + 60, "wide": 8 * 3600 + 60}


def test_an_elastic_job_takes_what_others_leave():
    jobs = [job("a", seconds=400, n=1, most=4), job("b", seconds=400, n=1, most=4)]
    assert ends(simulate(jobs, "drf")) == {"a": 200, "b": 200}


def test_a_job_goes_through_epochs_of_different_speed_exactly():
    class TwoEpochs:
        name, min_devices, max_devices, kinds = "two", 1, 2, None

        def segment_s(self, shape, kind, n_servers):
            return np.array([100.0, 10.0]) / sum(shape)

    live = Live(
        [Job(name="a", submit_s=0, profile=TwoEpochs(), n_devices=1, restart_s=0)],
        equal_nodes(1, 2),
        Speeds(equal_nodes(1, 2)),
        adapts_batch=False,
        errors=ForecastErrors([0.0]),
    )
    live.start(0, ((0, 1),), 0)
    live.now_s = 105.0
    assert live.position(0) == pytest.approx(1.5)
    assert live.remaining_s(0, "GPU").tolist() == pytest.approx([np.inf, 5.0, 2.5])
    live.stop(0)
    assert live.start(0, ((0, 2),), 0) == pytest.approx(107.5)


def test_a_slower_type_is_used_where_the_faster_one_is_taken():
    profile = CountProfile(name="both", seconds={"V100": (10.0,), "T4": (30.0,)})
    jobs = [Job(name=name, submit_s=0, profile=profile, n_devices=1, restart_s=0) for name in "ab"]
    assert ends(simulate_policy(jobs, find_machines("1xT4+1xV100"), Fifo(), AT_ONCE)) == {"a": 10, "b": 30}


def test_policies_for_one_type_refuse_several():
    with pytest.raises(InputError, match="'optimus' schedules devices of a single type"):
        simulate_policy([job("a")], find_machines("1xT4+1xV100"), make_policy("optimus"), AT_ONCE)


def test_a_training_takes_its_steps_times_its_step_time():
    application = tiny_application()
    fixed = TrainingProfile(application, 8)
    one = Job(name="a", submit_s=0, profile=fixed, n_devices=2, restart_s=0)
    schedule = simulate_policy([one], equal_nodes(1, 2), make_policy("fifo"), AT_ONCE)
    assert schedule.makespan_s == pytest.approx(200 * (0.4 + 0.02))


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([], "no jobs"),
        ([job("a"), job("a")], "Two jobs are named 'a'"),
        ([job("a", n=9)], "asks for 9 devices, but '1x4xGPU' has only 4"),
    ],
)
def test_what_cannot_be_scheduled_is_told(jobs, words):
    with pytest.raises(InputError, match=words):
        simulate(jobs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"submit_s": -1.0}, "a submission time of -1 s"),
        ({"n_devices": 0}, "asks for 0 devices"),
        ({"n_devices": 1.5}, "asks for 1.5 devices: it should be a whole number"),
        ({"work_sigma": -1.0}, "work_sigma should be 0 or more"),
        ({"length": 0.0}, "has the length 0"),
        ({"restart_s": -1.0}, "restarts in -1 s"),
    ],
)
def test_a_job_that_cannot_be_is_told(changes, words):
    settings = {"name": "a", "submit_s": 0.0, "profile": job("a").profile, "n_devices": 1, **changes}
    with pytest.raises(InputError, match=words):
        Job(**settings)


def test_a_job_of_no_seconds_is_told():
    with pytest.raises(InputError, match="seconds above 0"):
        job("a", seconds=0)


def test_a_job_for_a_type_that_is_not_there_is_told():
    profile = CountProfile(name="fast", seconds={"A100": (10.0,)})
    with pytest.raises(InputError, match="Job 'a' runs on A100, which '1x4xGPU' does not have"):
        simulate([Job(name="a", submit_s=0, profile=profile, n_devices=1)])


@pytest.mark.parametrize(
    ("placement", "n_servers", "words"),
    [
        (((0, 5),), 0, "not free"),
        (((0, 2), (0, 2)), 0, "each once"),
        (((-1, 1),), 0, "nodes 0 to 1"),
        (((2, 1),), 0, "nodes 0 to 1"),
        ((), 0, "nodes 0 to 1"),
        (((0, 0),), 0, "not free"),
        (((0, 1), (1, 1)), 0, "one type of device at a time"),
        (((1, 1),), 0, "one type of device at a time: T4"),
        (((0, 1),), 1, "a worker too"),
    ],
)
def test_a_placement_that_is_none_is_told(placement, n_servers, words):
    """Node 0 has three T4, node 1 one V100; the job runs on T4."""
    profile = CountProfile(name="slow", seconds={"T4": (10.0, 5.0)})
    lone = [Job(name="a", submit_s=0, profile=profile, n_devices=1)]
    policy = Told(lambda state: Decision({0: placement}, {0: n_servers}))
    with pytest.raises(InputError, match=f"Policy 'told' puts job 'a' on .*{words}"):
        simulate_policy(lone, find_machines("1x3xT4+1x1xV100"), policy, AT_ONCE)


def test_a_policy_that_gives_a_device_twice_or_to_nobody_is_told():
    twice = Told(lambda state: Decision({one: ((0, 3),) for one in state.active}))
    with pytest.raises(InputError, match=r"puts job 'b' on .*not free"):
        simulate_policy([job("a"), job("b")], equal_nodes(1, 4), twice, AT_ONCE)
    nobody = Told(lambda state: Decision({7: ((0, 1),)}))
    with pytest.raises(InputError, match=r"puts job 7 on .*neither waiting nor running"):
        simulate_policy([job("a")], equal_nodes(1, 4), nobody, AT_ONCE)


def test_a_job_submitted_a_rounding_error_after_an_interval_is_decided_on_in_it():
    """600 times 0.1 is 60.00000000000058: the decision comes then, and not before the job is there."""
    submit_s = 0.0
    for _ in range(600):
        submit_s += 0.1
    assert submit_s > 60
    for policy in ONE_TYPE:
        schedule = simulate([job("a", submit_s=submit_s, seconds=10)], policy, rules=Rules(interval_s=60))
        assert schedule.jobs[0].start_s == submit_s, policy
        assert [moment.now_s for moment in schedule.moments] == [submit_s], policy


def test_an_end_a_rounding_error_after_an_interval_does_not_turn_time_back():
    late = 60 + 3e-8
    schedule = simulate([job("a", seconds=late), job("b", seconds=10)], devices=1, rules=Rules(interval_s=60))
    first, second = schedule.spans
    assert first.until_s == late <= second.since_s
    assert ends(schedule)["b"] == late + 10


def test_a_demotion_is_not_missed_by_a_rounding_error():
    """From 22169.2 s on, four devices have had 57599.999999999985 device-seconds at the moment worked out for it."""
    wide, late = job("wide", 22169.2, 28800, n=4), job("late", 22169.2, 60, n=4)
    schedule = simulate([wide, late], "tiresias", devices=4)
    assert next(one for one in schedule.jobs if one.name == "late").start_s == pytest.approx(22169.2 + 4 * 3600)


def test_tiresias_may_have_three_queues():
    """Demoted after 100 and 300 device-seconds: the newcomer of each queue passes those of the next."""
    jobs = [job("first", seconds=400), job("second", submit_s=150, seconds=200), job("third", submit_s=350, seconds=10)]
    three = Tiresias(thresholds_device_s=(100.0, 300.0))
    assert ends(simulate_policy(jobs, equal_nodes(1, 1), three, AT_ONCE)) == {"third": 360, "second": 510, "first": 610}
    assert ends(simulate_policy(jobs, equal_nodes(1, 1), Tiresias(), AT_ONCE)) == {
        "first": 400,
        "second": 600,
        "third": 610,
    }
