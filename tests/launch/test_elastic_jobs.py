"""Elastic jobs, what is known of them, and what cannot be scheduled."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from elastic_parts import HEADER, elastic

from traincast.api.elastic import forecast_of, schedule
from traincast.errors import FileFormatError, InputError, UnknownModelError
from traincast.launch.elastic_events import Event
from traincast.launch.elastic_history import is_fruitless
from traincast.launch.elastic_job import JobFolder, Progress, read_elastic_jobs
from traincast.launch.elastic_state import Snapshot
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.profile import CountProfile
from traincast.scheduling.speeds import Speeds


def snapshot(progress):
    profile = CountProfile(name="p", seconds={"CPU": (100.0, 60.0)})
    machines = find_machines("1x2xCPU")
    return Snapshot(
        now_s=0.0,
        machines=machines,
        capacity=[2],
        jobs=[Job(name="a", submit_s=0.0, profile=profile, n_devices=1)],
        speeds=Speeds(machines),
        active={0: None},
        placed={0: ((0, 1),)},
        n_starts=[1],
        device_s=[0.0],
        progress=progress,
    )


def test_a_policy_sees_the_forecast_until_steps_were_seen_and_then_their_pace():
    assert snapshot({}).remaining_s(0, "CPU").tolist() == [np.inf, 100.0, 60.0]
    half = Progress(step=50, n_steps=100, n_workers=1, step_s=2.0)  # twice as slow as forecast, and half done
    assert snapshot({0: half}).remaining_s(0, "CPU").tolist() == [np.inf, 100.0, 60.0]
    assert snapshot({0: half}).requested_s([0]).tolist() == [100.0]
    assert snapshot({0: half}).free == [1]


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "optimus-online"])
def test_every_policy_gives_a_real_job_devices_that_are_there(policy):
    half = Progress(step=50, n_steps=100, n_workers=1, step_s=2.0)
    (placement,) = make_policy(policy).decide(snapshot({0: half})).placements.values()
    assert placement in (((0, 1),), ((0, 2),))


def test_more_workers_are_forecast_to_end_sooner():
    one, two = forecast_of(elastic()).profile.seconds["CPU"]
    assert 0 < two < one


def ends(*hows_and_steps):
    return [
        Event(number=n, now_s=0.0, what="end", job="a", values={"how": how, "step": step})
        for n, (how, step) in enumerate(hows_and_steps)
    ]


def test_workers_that_die_again_and_again_at_the_same_step_are_fruitless():
    assert is_fruitless(ends(*[("lost", 7)] * 5))
    assert not is_fruitless(ends(*[("lost", 7)] * 4))
    assert not is_fruitless(ends(*[("lost", 7)] * 4, ("lost", 8)))


def test_deaths_of_the_scheduler_are_no_fault_of_the_job():
    assert not is_fruitless(ends(*[("orphaned", 7)] * 9))
    assert not is_fruitless(ends(*[("lost", 7)] * 4, ("orphaned", 7)))
    assert is_fruitless(ends(*[("lost", 7), ("orphaned", 7)] * 5))


def test_until_its_result_is_written_a_job_has_something_left():
    """The last step is told before the last evaluation: who dies there has to be started once more."""
    told = Progress(step=100, n_steps=100, n_workers=1, step_s=1.0)
    assert told.fraction == 0.99
    for policy in ("traincast", "optimus", "srtf", "pollux"):
        waiting = replace(snapshot({0: told}), placed={})
        assert sum(n for _, n in make_policy(policy).decide(waiting).placements[0]) >= 1, policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,submit_s\na,0\n", "has the columns name, submit_s, but jobs need name, submit_s, model"),
        (f"{HEADER}\n", "has no jobs"),
        (f"{HEADER},n_worker\na,0,cifar_resnet20,64,1,1,2,2\n", "a column 'n_worker' that does not apply"),
        (f"{HEADER}\na,0,cifar_resnet20,64,1,1,2,2\n", "line 2: it has more cells than the 7 columns"),
        (f"{HEADER}\na,0,cifar_resnet20,64,1,1,2\na,0,cifar_resnet20,64,1,1,2\n", "line 3: a second job 'a'"),
        (f"{HEADER}\na,0,cifar_resnet20,x,1,1,2\n", "line 2: batch_size is 'x', not a number"),
        (f"{HEADER}\na,0,cifar_resnet20,1.5,1,1,2\n", "line 2: batch_size is 1.5: it should be a whole number"),
        (f"{HEADER}\na,0,cifar_resnet20,64,1,2,1\n", "line 2: .* should rise"),
        (f"{HEADER}\na,soon,cifar_resnet20,64,1,1,2\n", "line 2: submit_s is 'soon', not a number"),
        (f"{HEADER}\na,-1,cifar_resnet20,64,1,1,2\n", "line 2: .* a submission time of -1 s: it should be 0 or later"),
        (f"{HEADER}\n../a,0,cifar_resnet20,64,1,1,2\n", "line 2: .* its folder has the same name"),
    ],
)
def test_a_file_of_jobs_that_cannot_be_right_is_told_with_its_line(tmp_path, text, message):
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_elastic_jobs(tmp_path / "jobs.csv")


def test_what_cannot_be_scheduled_is_told_before_anything_starts(tmp_path):
    with pytest.raises(UnknownModelError, match="Job 'a': There is no recipe"):
        schedule([elastic(model="resnet9000")], tmp_path / "a")
    with pytest.raises(InputError, match="interval_s cannot be 0: give a number above 0"):
        schedule([elastic()], tmp_path / "a", interval_s=0)
    with pytest.raises(InputError, match="There is no policy"):
        schedule([elastic()], tmp_path / "a", policy="lottery")
    with pytest.raises(InputError, match="asks for 3 devices, but '1x2xCPU' has only 2"):
        schedule([elastic(n_devices=3, max_devices=3)], tmp_path / "a", n_cpus=2)
    with pytest.raises(InputError, match="Two jobs are named 'a'"):
        schedule([elastic(), elastic()], tmp_path / "a", n_cpus=2)
    with pytest.raises(InputError, match="'optimus-online' needs trainings with parameter servers"):
        schedule([elastic()], tmp_path / "a", n_cpus=2, policy="optimus-online")
    assert not (tmp_path / "a").exists()


ONE_OF_TWO = """
import sys
from pathlib import Path
import torch
from traincast.launch.elastic_job import JobFolder
from traincast.launch.elastic_worker import WorkerRank, Team
from traincast.recipes.engine.interrupt import Interrupt

rank, folder, interrupt = int(sys.argv[1]), Path(sys.argv[2]), Interrupt()
place = WorkerRank(folder=str(folder), rank=rank, n_workers=2, attempt=7)
team = Team(place, JobFolder(folder), interrupt)
inputs = torch.arange(5.0)
weight = torch.nn.Parameter(torch.tensor([0.0]))
optimizer = torch.optim.SGD([weight], lr=1.0)
with team.met():
    own = inputs[rank::2]
    team.n_images = len(own)
    (weight * own).mean().backward()
    optimizer.step()
print(weight.item(), interrupt.is_asked)
"""


def test_two_workers_make_the_step_of_the_whole_batch_and_stop_together(tmp_path):
    """Of the inputs 0 to 4 one has 0, 2, 4 and the other 1, 3: the mean of all is 2, and so is the gradient."""
    JobFolder(tmp_path).ask_to_stop(7)
    lines = [[sys.executable, "-c", ONE_OF_TWO, str(rank), str(tmp_path)] for rank in range(2)]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in lines]
    assert [one.communicate()[0].split() for one in both] == [["-2.0", "True"]] * 2
