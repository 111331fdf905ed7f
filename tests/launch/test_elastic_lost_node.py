"""A job whose node is lost goes on from its checkpoint on another: a real Ray cluster, two nodes on one machine."""

import csv
import threading
import time

import psutil
import pytest
from elastic_parts import elastic

from traincast.api.elastic import schedule
from traincast.launch.elastic_job import JobFolder

pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files to the collector

_N_EPOCHS, _STEPS_AN_EPOCH = 10, 23
_LONGEST_S = 120.0
# Ray asks its nodes each second whether they live; on a busy machine even one that does may be late to answer.
_SOON = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 8}


@pytest.fixture
def cluster(monkeypatch):
    """A head that trains nothing, and two nodes with a CPU each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": _SOON})
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        yield made
    finally:
        made.shutdown()


def is_at_work(node):
    """Whether one of its processes trains."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return any(each.name().startswith("ray::work") for each in raylet.children(recursive=True))


class Watcher(threading.Thread):
    """Kills the node that trains as soon as there is a checkpoint, and notes the first step that is told after that."""

    def __init__(self, cluster, folder):
        super().__init__(daemon=True)
        self._cluster, self._folder = cluster, folder
        self.is_killed, self.step_after = False, None

    def run(self):
        self._wait_for((self._folder.run_path / "checkpoint.pt").exists)
        if self._folder.is_finished:
            return
        (node,) = [node for node in self._cluster.worker_nodes if is_at_work(node)]
        self._cluster.remove_node(node, allow_graceful=False)
        self.is_killed = True
        told_s = self._folder.told_s()
        self._wait_for(lambda: self._folder.told_s() != told_s)
        self.step_after = self._folder.progress().step

    @staticmethod
    def _wait_for(is_so):
        until_s = time.monotonic() + _LONGEST_S
        while not is_so() and time.monotonic() < until_s:
            time.sleep(0.02)


def test_a_job_whose_node_is_lost_goes_on_from_its_checkpoint_on_the_other(cluster, tmp_path):
    watcher = Watcher(cluster, JobFolder(tmp_path / "out" / "jobs" / "a"))
    watcher.start()
    job = elastic(n_epochs=_N_EPOCHS, max_devices=1)
    (found,) = schedule([job], tmp_path / "out", policy="fifo", interval_s=1.0, on_ray=cluster.address).jobs
    watcher.join(_LONGEST_S)
    if not watcher.is_killed:
        pytest.skip("it ended before the first checkpoint, which is written after five seconds")
    assert found.error == ""
    assert found.n_lost >= 1, "until Ray knows of the loss, a second start may be sent to the same node"
    assert found.devices == (1,) * (1 + found.n_lost)
    assert watcher.step_after > _STEPS_AN_EPOCH, "a checkpoint is written after an epoch at the earliest"
    with (tmp_path / "out" / "jobs" / "a" / "run" / "log.csv").open() as file:
        steps = [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
    assert steps == list(range(1, _N_EPOCHS * _STEPS_AN_EPOCH + 1))
