"""The scheduler of real jobs on a cluster that a test plays: who is started where, and what is made of losses."""

import os
import time

import pytest
from elastic_parts import elastic

import traincast.launch.elastic_scheduler as scheduling
from traincast.errors import InputError, StoreError
from traincast.launch.elastic_crew import Ended
from traincast.launch.elastic_events import END, START, EventLog
from traincast.launch.elastic_history import outcome_of
from traincast.launch.elastic_job import JobFolder, Progress
from traincast.launch.elastic_scheduler import Scheduler
from traincast.records.environment import read_environment
from traincast.records.store import Store
from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.profile import CountProfile

INTERVAL_S = 0.1


class Stage:
    """Nodes whose workers do what the test says in `act(stage, crew, n_looks)`: how they ended, or None."""

    def __init__(self, *devices, act):
        kinds = ("CPU",) * len(devices)
        self.machines = Machines(devices=devices, kinds=kinds, name="+".join(f"1x{n}xCPU" for n in devices))
        self.up = [True] * len(devices)
        self.starts, self.dismissed = [], []
        self._act, self._n_polls, self._n_looks = act, 0, {}

    def are_alive(self):
        self._n_polls += 1
        assert self._n_polls < 400, "it polls for ever"
        return list(self.up)

    def start(self, job, placement, *, folder, attempt):
        self.starts.append((job.name, placement))
        return (job.name, folder, attempt)

    def outcome(self, crew):
        self._n_looks[crew] = self._n_looks.get(crew, 0) + 1
        return self._act(self, crew, self._n_looks[crew])

    def dismiss(self, crew):
        self.dismissed.append(crew.placement)


def finish(stage, crew, n_looks):
    """As soon as it is looked at a second time."""
    return Ended("finished") if n_looks > 1 else None


def forecast_of(job, seconds=600.0):
    profile = CountProfile(name="p", seconds={"CPU": tuple(seconds / n for n in range(1, job.max_devices + 1))})
    return Job(name=job.name, submit_s=job.submit_s, profile=profile, n_devices=job.n_devices, restart_s=1.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(scheduling, "_POLL_S", 0.005)


@pytest.fixture
def run(tmp_path):
    """Runs a scheduler in one folder; a second call goes on with it."""

    def begin(stage, jobs, policy="fifo"):
        with Store(tmp_path / "schedule.db") as store:
            log = EventLog(store, read_environment())
            Scheduler(stage, jobs, [forecast_of(job) for job in jobs], tmp_path, log).run(
                make_policy(policy), interval_s=INTERVAL_S
            )
            return log, [outcome_of(log, job.name, job.submit_s) for job in jobs]

    return begin


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "optimus-online"])
def test_the_plan_of_a_policy_leaves_no_trace_in_its_decisions(run, policy):
    """In the simulation before it jobs run for minutes; the real ones are started at once all the same."""
    stage = Stage(2, 2, act=finish)
    log, jobs = run(stage, [elastic("a"), elastic("b")], policy)
    assert {name for name, _ in stage.starts} == {"a", "b"}
    assert max(job.start_s for job in jobs) < 60
    assert log.events[0].values["planned_finish_s"]["a"] > 200


def test_a_job_on_a_node_that_is_gone_is_started_on_another(run):
    def act(stage, crew, n_looks):
        if crew.placement[0][0] == 0:
            stage.up[0] = False  # and its tasks never say a word
            return None
        return finish(stage, crew, n_looks)

    stage = Stage(2, 2, act=act)
    _, (job,) = run(stage, [elastic(n_devices=2)])
    assert stage.starts == [("a", ((0, 2),)), ("a", ((1, 2),))]
    assert stage.dismissed == [((0, 2),)]
    assert (job.n_lost, job.error) == (1, "")


@pytest.mark.parametrize("policy", ["fifo", "srtf", "tiresias", "gavel"])
def test_what_is_left_of_a_cluster_may_be_too_small(run, policy):
    def act(stage, crew, n_looks):
        stage.up[1] = False

    with pytest.raises(InputError, match=f"'{policy}' cannot start job 'a', which asks for 2 devices, on the 1 that"):
        run(Stage(1, 1, act=act), [elastic(n_devices=2)], policy)


def test_a_scheduler_that_goes_on_with_fewer_devices_says_so(run):
    def die(stage, crew, n_looks):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Stage(2, act=die), [elastic(n_devices=2)])
    with pytest.raises(InputError, match="asks for 2 devices, but '1x1xCPU' has only 1"):
        run(Stage(1, act=finish), [elastic(n_devices=2)])


@pytest.mark.parametrize("policy", ["traincast", "optimus"])
def test_a_job_that_died_after_its_last_step_is_started_once_more(run, tmp_path, policy):
    def die(stage, crew, n_looks):
        JobFolder(tmp_path / "jobs" / "a").tell(Progress(step=23, n_steps=23, n_workers=1, step_s=0.1))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Stage(2, act=die), [elastic()], policy)
    _, (job,) = run(Stage(2, act=finish), [elastic()], policy)
    assert len(job.devices) == 2
    assert job.finish_s is not None


def test_the_clock_of_a_schedule_goes_on_and_a_job_ended_when_its_result_was_written(run, tmp_path):
    def die(stage, crew, n_looks):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Stage(2, act=die), [elastic()])
    with Store(tmp_path / "schedule.db") as store:
        before = EventLog(store, read_environment())
    assert before.begun_s + before.events[-1].now_s == pytest.approx(time.time(), abs=5)
    result = tmp_path / "jobs" / "a" / "run" / "result.json"
    result.parent.mkdir(parents=True)
    result.write_text("{}")
    os.utime(result, (before.begun_s + 1.25, before.begun_s + 1.25))
    log, (job,) = run(Stage(2, act=finish), [elastic()])
    assert log.begun_s == pytest.approx(before.begun_s, abs=1e-6)
    assert job.finish_s == pytest.approx(1.25, abs=0.01)
    assert [event.now_s for event in log.events] == sorted(event.now_s for event in log.events)


def test_a_crew_that_does_not_stop_is_ended_by_force(run, monkeypatch):
    """Its tasks were never begun, so nobody reads that it should stop: its devices are needed elsewhere."""
    monkeypatch.setattr(scheduling, "_LONGEST_STOP_S", 0.1)

    def act(stage, crew, n_looks):
        is_first = (crew.tasks[0], crew.attempt) == ("long", 0)
        return None if is_first else finish(stage, crew, n_looks)

    stage = Stage(2, act=act)
    log, (long, short) = run(stage, [elastic("long"), elastic("short", submit_s=1.0)], "optimus")
    assert stage.dismissed == [((0, 2),)]
    assert [event.values["how"] for event in log.of_job("long", END)] == ["stopped", "finished"]
    assert (long.n_lost, short.error) == (0, "")
    assert long.devices[:2] == (2, 1)


def test_two_schedulers_cannot_write_one_log(tmp_path):
    with Store(tmp_path / "schedule.db") as store:
        first, second = (EventLog(store, read_environment()) for _ in range(2))
        first.add(START, "a")
        with pytest.raises(StoreError, match="already has an event 0"):
            second.add(START, "a")
