"""Real trainings on a real local Ray: grown, shrunk, killed with their scheduler, and brought to their ends."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from traincast.api.elastic import forecast_of, schedule
from traincast.errors import FileFormatError, InputError, UnknownModelError
from traincast.launch.elastic_events import Event
from traincast.launch.elastic_history import is_fruitless
from traincast.launch.elastic_job import COLUMNS, ElasticJob, JobFolder, Progress, read_elastic_jobs
from traincast.launch.elastic_state import Snapshot
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.profile import CountProfile
from traincast.scheduling.speeds import Speeds

HEADER = ",".join(COLUMNS)


def elastic(name="a", **changes):
    settings = {"submit_s": 0.0, "model": "cifar_resnet20", "batch_size": 64, "n_epochs": 1}
    return ElasticJob(name=name, **{**settings, "n_devices": 1, "max_devices": 2, **changes})


def snapshot(progress):
    profile = CountProfile(name="p", seconds={"CPU": (100.0, 60.0)}, is_any_kind=True)
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


def test_workers_that_die_again_and_again_at_the_same_step_are_fruitless():
    def ends(steps):
        return [
            Event(number=n, now_s=0.0, what="end", job="a", values={"how": "lost", "step": step})
            for n, step in enumerate(steps)
        ]

    assert is_fruitless(ends([7] * 5), "a")
    assert not is_fruitless(ends([7] * 4), "a")
    assert not is_fruitless(ends([7, 7, 7, 7, 8]), "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,submit_s\na,0\n", "should hold jobs"),
        (f"{HEADER}\n", "should hold jobs"),
        (f"{HEADER}\na,0,cifar_resnet20,x,1,1,2\n", "line 2: .* whole numbers"),
        (f"{HEADER}\na,0,cifar_resnet20,64,1,2,1\n", "line 2: .* should rise"),
        (f"{HEADER}\n../a,0,cifar_resnet20,64,1,1,2\n", "line 2: .* name is that of its folder"),
    ],
)
def test_a_file_of_jobs_that_cannot_be_right_is_told_with_its_line(tmp_path, text, message):
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_elastic_jobs(tmp_path / "jobs.csv")


def test_what_cannot_be_scheduled_is_told_before_anything_starts(tmp_path):
    with pytest.raises(UnknownModelError, match="no recipe"):
        schedule([elastic(model="resnet9000")], tmp_path / "a")
    with pytest.raises(InputError, match="above 0 s"):
        schedule([elastic()], tmp_path / "a", interval_s=0)
    with pytest.raises(InputError, match="No policy is named"):
        schedule([elastic()], tmp_path / "a", policy="lottery")
    assert not (tmp_path / "a").exists()


ONE_OF_TWO = """
import sys
from pathlib import Path
import torch
from traincast.launch.elastic_job import JobFolder
from traincast.launch.elastic_worker import Place, Team
from traincast.recipes.engine.interrupt import Interrupt

rank, folder, interrupt = int(sys.argv[1]), Path(sys.argv[2]), Interrupt()
place = Place(folder=str(folder), rank=rank, n_workers=2, attempt=7)
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


pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files to the collector


def steps_of(folder, name):
    """Of the log: the step of each row that has a loss."""
    with (folder / "jobs" / name / "run" / "log.csv").open() as file:
        return [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]


def workers_below(process):
    """Processes of Ray that train, which this process or one of its children started."""
    return [one for one in process.children(recursive=True) if one.name().startswith("ray::work")]


def wait_until(is_so, process):
    """While the process lives."""
    until = time.monotonic() + 60
    while not is_so() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    assert process.poll() is None, "it is at work"


def test_a_job_gives_a_device_to_a_newcomer_and_takes_it_back(tmp_path):
    """Long alone has both CPUs; short comes, and each has one; short ends, and long has both."""
    seen = []
    jobs = [elastic("long", n_epochs=3), elastic("short", submit_s=1.0)]
    long, short = schedule(jobs, tmp_path / "a", interval_s=2.0, n_cpus=2, on_event=seen.append)
    assert long.devices[:2] == (2, 1)
    assert short.devices[0] == 1
    assert (long.error, short.error, long.n_lost, short.n_lost) == ("", "", 0, 0)
    assert min(short.finish_s, long.expected_finish_s, long.planned_finish_s) > 0
    assert steps_of(tmp_path / "a", "long") == list(range(1, 3 * 23 + 1)), "every step once, over all starts"
    assert steps_of(tmp_path / "a", "short") == list(range(1, 23 + 1))
    assert [event.number for event in seen] == list(range(len(seen)))


def test_a_job_survives_the_death_of_its_scheduler_and_of_one_of_two_workers(tmp_path):
    (tmp_path / "jobs.csv").write_text(f"{HEADER}\na,0,cifar_resnet20,64,2,2,2\n")
    line = [sys.executable, "-m", "traincast", "schedule", str(tmp_path / "jobs.csv"), "--out", str(tmp_path / "out")]
    line += ["--cpus", "2", "--interval", "2", "--policy", "fifo", "--json"]
    folder = JobFolder(tmp_path / "out" / "jobs" / "a")
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        wait_until(folder.progress, first)
        orphans = workers_below(psutil.Process(first.pid))
        first.kill()
        for one in orphans:  # Ray does it 2 to 3 seconds later: on a fast machine they would have finished
            one.kill()
    assert not folder.is_finished
    told_s = folder.told_s()
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
        process = psutil.Process(second.pid)
        wait_until(lambda: folder.told_s() > told_s and len(workers_below(process)) == 2, second)
        os.kill(workers_below(process)[1].pid, signal.SIGKILL)
        out, told = second.communicate()
    assert second.returncode == 0, told
    (job,) = json.loads(out)["jobs"]
    assert (job["devices"], job["n_lost"], job["error"]) == ([2, 2, 2], 2, "")
    assert "fifo goes on" in told
    assert "The scheduler ended." in told
    assert steps_of(tmp_path / "out", "a") == list(range(1, 2 * 23 + 1))
    with pytest.raises(InputError, match="holds runs with policy fifo, not srtf"):
        schedule(tmp_path / "jobs.csv", tmp_path / "out", policy="srtf")
