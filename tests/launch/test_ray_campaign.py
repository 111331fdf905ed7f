"""A campaign on a real local Ray: a worker killed midway, nothing lost, nothing doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from traincast.errors import InputError, MeasurementError
from traincast.launch.ray_campaign import Slot, ray_cluster, run_on_ray, slots_of
from traincast.microbenchmarks.layer_bench import run_layer
from traincast.microbenchmarks.layer_tasks import layer_tasks
from traincast.records.store import Store
from traincast.records.work_list import Task, WorkList


def node(name, *, alive=True, **resources):
    return {"NodeID": name, "NodeManagerHostname": f"host-{name}", "Alive": alive, "Resources": resources}


def test_a_gpu_is_a_slot_and_so_is_a_node_without_one_or_each_share_of_its_cpus():
    nodes = [node("a", CPU=8.0, GPU=2.0), node("b", CPU=4.0), node("c", CPU=4.0, alive=False), node("d", memory=1.0)]
    assert slots_of(nodes, device="cuda") == [Slot("a", "host-a", 0, 4, 1), Slot("a", "host-a", 1, 4, 1)]
    assert slots_of(nodes, device="cpu") == [Slot("a", "host-a", 0, 8, 0), Slot("b", "host-b", 0, 4, 0)]
    shares = slots_of(nodes, device="cpu", cpus_per_task=3)
    assert [(slot.node, slot.number, slot.n_cpus) for slot in shares] == [("a", 0, 3), ("a", 1, 3), ("b", 0, 3)]


pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files to the collector


@pytest.fixture(scope="module")
def ray():
    with ray_cluster("local", n_cpus=2) as started:
        started.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test
        yield started


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as opened:
        yield opened


def nap(settings):
    """Leaves a mark with the process that does it, and takes a moment."""
    with (Path(settings["folder"]) / "begun.txt").open("a") as marks:
        marks.write(f"{settings['number']} {os.getpid()}\n")
    time.sleep(0.3)
    return {"square": settings["number"] ** 2}


def naps(folder, n):
    return [Task("nap", {"number": number, "folder": str(folder)}) for number in range(n)]


def begun(folder):
    marks = folder / "begun.txt"
    return [tuple(map(int, line.split())) for line in marks.read_text().splitlines()] if marks.exists() else []


def nap_or_die(settings):
    """The first time that its turn comes, the fifth task ends its worker as the kernel does when memory ends."""
    is_first_time = all(number != settings["number"] for number, _ in begun(Path(settings["folder"])))
    found = nap(settings)
    if settings["number"] == 4 and is_first_time:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def test_a_worker_killed_midway_costs_one_task_done_twice_and_nothing_else(ray, store, tmp_path):
    work = WorkList(naps(tmp_path, 12), store, campaign="c")
    progress = run_on_ray(ray, work, nap_or_die, cpus_per_task=1)
    assert (progress.n_now, progress.n_failed, progress.n_left) == (12, 0, 0)
    records = store.records()
    assert sorted(record.values["square"] for record in records) == [number**2 for number in range(12)]
    numbers = [number for number, _ in begun(tmp_path)]
    assert sorted(numbers) == sorted([*range(12), 4]), "only the killed task was begun again"
    assert len({process for _, process in begun(tmp_path)}) >= 2


def test_a_real_layer_is_timed_by_a_worker_and_resumed_here(ray, store):
    tasks = [task for task in layer_tasks(12) if task.settings["layer"] == "dense"]
    progress = run_on_ray(ray, WorkList(tasks[:2], store, campaign="c"), run_layer, cpus_per_task=1)
    assert progress.n_now == 2
    assert all(record.values["step_s"] > 0 for record in store.records("layer"))
    assert {record.environment.n_threads for record in store.records()} == {1}
    assert WorkList(tasks, store, campaign="c").progress.n_before == 2


def test_a_task_that_kills_every_worker_is_stored_as_failed(ray, store, monkeypatch):
    monkeypatch.setattr("traincast.launch.ray_campaign.MOST_RETRIES", 0)
    task = Task("nap", {"number": 0})
    progress = run_on_ray(ray, WorkList([task], store, campaign="c"), lambda _: os._exit(1), cpus_per_task=2)
    assert progress.n_failed == 1
    (record,) = store.records()
    assert "The Ray worker on" in record.error
    assert "died 1 times" in record.error


def test_an_error_in_our_words_is_a_result_and_a_bug_ends_the_campaign(ray, store):
    def refuse(settings):
        raise InputError("Not today.")

    def broken(settings):
        return 1 / 0

    tasks = [Task("nap", {"number": number}) for number in range(2)]
    assert run_on_ray(ray, WorkList(tasks[:1], store, campaign="c"), refuse, cpus_per_task=1).n_failed == 1
    with pytest.raises(ZeroDivisionError):
        run_on_ray(ray, WorkList(tasks, store, campaign="c"), broken, cpus_per_task=1)
    assert [record.error for record in store.records()] == ["Not today."]


def test_the_command_runs_on_a_cluster_that_is_there(ray, tmp_path):
    line = [sys.executable, "-m", "traincast", "bench", "ops", "--rows", "2", "--store", str(tmp_path / "a.db")]
    line += ["--on-ray", ray.get_runtime_context().gcs_address, "--cpus-per-task", "1", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["n_tasks"], told["n_now"], told["n_failed"]) == (2, 2, 0)
    with Store(tmp_path / "a.db", create=False) as kept:
        assert all(record.values["fastest_s"] > 0 for record in kept.records("op"))


def test_a_node_without_what_the_task_needs_is_one_sentence(ray, store):
    def needs_more(settings):
        raise ModuleNotFoundError("No module named 'traincast'")

    work = WorkList([Task("nap", {"number": 0})], store, campaign="c")
    with pytest.raises(
        MeasurementError, match=r"cannot run the task \(.*every node needs the same traincast as this one"
    ):
        run_on_ray(ray, work, needs_more, cpus_per_task=1)


def test_a_cluster_that_all_nodes_have_left_is_not_waited_for_for_ever(ray, store, monkeypatch):
    monkeypatch.setattr("traincast.launch.ray_campaign.LONGEST_WITHOUT_NODES_S", 0.0)
    nodes = iter([[node("a", CPU=1.0)]])
    left = SimpleNamespace(nodes=lambda: next(nodes, []), remote=ray.remote, exceptions=ray.exceptions)
    with pytest.raises(MeasurementError, match=r"All nodes of the Ray cluster have left\. Finished work is stored"):
        run_on_ray(left, WorkList([Task("nap", {"number": 0})], store, campaign="c"), nap)


def test_a_cluster_without_the_device_is_one_sentence(ray, store):
    work = WorkList([Task("nap", {"number": 0})], store, campaign="c")
    with pytest.raises(InputError, match="No node of this Ray cluster has a GPU"):
        run_on_ray(ray, work, nap, device="cuda")
    with pytest.raises(InputError, match="has 3 CPUs"):
        run_on_ray(ray, work, nap, cpus_per_task=3)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999"])
def test_an_address_where_no_cluster_is_gives_one_sentence_at_once(address):
    with pytest.raises(InputError, match=f"Cannot use a Ray cluster at '{address}'"), ray_cluster(address):
        pass


def test_what_is_no_address_is_one_sentence_of_the_command(tmp_path):
    line = [sys.executable, "-m", "traincast", "bench", "ops", "--rows", "1", "--store", str(tmp_path / "a.db")]
    done = subprocess.run([*line, "--on-ray", "not an address"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Cannot use a Ray cluster at 'not an address'" in done.stderr.splitlines()[-1]
