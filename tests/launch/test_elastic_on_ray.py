"""Real trainings on a real local Ray: grown, shrunk, killed with their scheduler, and brought to their ends."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from elastic_parts import HEADER, elastic

from traincast.api.elastic import schedule
from traincast.errors import InputError
from traincast.launch.elastic_job import JobFolder

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
    jobs = [elastic("long", n_epochs=5), elastic("short", submit_s=1.0)]
    long, short = schedule(jobs, tmp_path / "a", interval_s=1.0, n_cpus=2, on_event=seen.append).jobs
    assert long.devices == (2, 1, 2)
    assert short.devices == (1,)
    assert (long.error, short.error, long.n_lost, short.n_lost) == ("", "", 0, 0)
    assert min(short.finish_s, long.expected_finish_s, long.planned_finish_s) > 0
    assert steps_of(tmp_path / "a", "long") == list(range(1, 5 * 23 + 1)), "every step once, over all starts"
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
        wait_until(lambda: (folder.told_s() or 0.0) > (told_s or 0.0) and len(workers_below(process)) == 2, second)
        os.kill(workers_below(process)[1].pid, signal.SIGKILL)
        out, told = second.communicate()
    assert second.returncode == 0, told
    (job,) = json.loads(out)["jobs"]
    assert (job["devices"], job["n_lost"], job["error"]) == ([2, 2, 2], 2, "")
    assert "fifo goes on" in told
    assert "The scheduler ended." in told
    assert steps_of(tmp_path / "out", "a") == list(range(1, 2 * 23 + 1))
    with pytest.raises(InputError, match="has runs with policy fifo, not srtf"):
        schedule(tmp_path / "jobs.csv", tmp_path / "out", policy="srtf")
