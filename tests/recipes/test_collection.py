"""A grid of training runs as a campaign: killed with -9 in its middle, resumed, nothing lost and nothing doubled."""

import csv
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
import torch
from tiny_runs import tiny_data

from traincast.api.collecting import collect, collection_stages, read_collection
from traincast.errors import InputError
from traincast.launch.recipe_campaign import run_collection
from traincast.recipes.collection import Grid, recipe_of, run_folder, run_name, train_task

torch.set_num_threads(1)
GRID = Grid(models=("cifar_resnet20",), n_epochs=(1, 2), seeds=(0, 1), image_side=8, batch_size=512)
LINE = ["--epochs", "1,2", "--seeds", "2", "--image-side", "8", "--batch", "512"]
N_STEPS = 3  # of an epoch: 1,438 images by 512


def test_a_grid_has_a_run_of_every_kind_and_the_short_ones_come_first():
    grid = Grid(
        models=("cifar_resnet20", "cifar_resnet32"), devices=("cpu", "cuda:0"), n_epochs=(4, 2), seeds=(0, 1, 2)
    )
    names = [run_name(task.settings) for task in grid.tasks()]
    assert len(names) == len(set(names)) == 2 * 2 * 2 * 3
    assert names[0] == "cifar_resnet20-cpu-2epochs-seed0"
    assert names[-1] == "cifar_resnet32-cuda0-4epochs-seed2"
    assert [int(task.settings["n_epochs"]) for task in grid.tasks()] == [2] * 12 + [4] * 12


def test_a_task_becomes_a_training_with_all_its_settings():
    grid = Grid(
        models=("cifar_resnet20",), learning_rate=0.3, optimizer="adam", weight_decay=0.0, seeds=(5,), n_epochs=(7,)
    )
    (task,) = grid.tasks()
    (stage,) = collection_stages(grid)
    assert stage.name == "cifar_resnet20-cpu-7epochs-seed5"
    assert (stage.n_epochs, stage.batch_size, stage.optimizer) == (7, 128, "adam")
    settings = recipe_of(task.settings, tiny_data()).settings
    assert (settings.learning_rate, settings.weight_decay, settings.seed) == (0.3, 0.0, 5)


def test_a_path_of_data_is_the_same_for_a_task_in_another_folder(tmp_path, monkeypatch):
    (tmp_path / "flowers").mkdir()
    monkeypatch.chdir(tmp_path)
    (task,) = Grid(models=("cifar_resnet20",), data="flowers").tasks()
    assert task.settings["data"] == str(tmp_path / "flowers")
    (named,) = Grid(models=("cifar_resnet20",), data="cifar10").tasks()
    assert named.settings["data"] == "cifar10"


@pytest.mark.parametrize(
    ("axes", "words"),
    [({"models": ()}, "at least one of its models"), ({"seeds": (1, 1)}, r"its seeds, each only once, not \[1, 1\]")],
)
def test_an_axis_without_values_or_with_one_twice_is_said(axes, words):
    with pytest.raises(InputError, match=words):
        Grid(**{"models": ("cifar_resnet20",), **axes})


def rows(path):
    if not path.exists():
        return []
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute("SELECT id, key, value, created_s FROM records ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # not made yet
        return []
    finally:
        connection.close()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A campaign that was killed while its second run trained; with what was stored then."""
    folder = tmp_path_factory.mktemp("collection") / "out"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRAINCAST_HOME": str(folder.parent / "home")}
    line = [sys.executable, "-m", "traincast", "train", "collect", *LINE, "--out", str(folder)]
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, env=environment)
    second = run_folder(folder, GRID.tasks()[1].settings) / "settings.json"
    until_s = time.monotonic() + 120
    while not (rows(folder / "runs.db") and second.exists()):
        assert child.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until_s
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    return folder, rows(folder / "runs.db")


@pytest.fixture(scope="module")
def resumed(killed):
    folder, _ = killed
    return collect(GRID, folder)


def test_the_campaign_goes_on_where_it_was_killed_and_loses_and_doubles_nothing(killed, resumed):
    folder, stored = killed
    final = rows(folder / "runs.db")
    assert final[: len(stored)] == stored, "records from before the kill have changed"
    assert sorted(key for _, key, *_ in final) == sorted(task.key for task in GRID.tasks())
    assert (resumed.progress.n_before, resumed.progress.n_now) == (len(stored), 4 - len(stored))
    assert (resumed.n_left, resumed.progress.n_failed) == (0, 0)


def test_every_run_has_its_folder_with_a_log_of_every_step_once(killed, resumed):
    folder, _ = killed
    assert sorted(path.name for path in (folder / "runs").iterdir()) == sorted(run.name for run in resumed.runs)
    for run in resumed.runs:
        with run.log.open() as file:
            steps = [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
        assert steps == list(range(1, N_STEPS * run.task["n_epochs"] + 1))
        assert run.n_steps == len(steps)


def test_runs_tell_accuracy_and_those_with_points_enough_a_curve(resumed):
    for run in resumed.runs:
        assert 0 <= run.test_accuracy <= run.best_test_accuracy <= 1
        if run.task["n_epochs"] == 1:
            assert run.curve is None
            assert "3" in run.error  # three points are no curve, and that is said
        else:
            assert set(run.curve) == {"floor", "scale", "exponent", "drop"}
            assert run.error is None


def test_the_same_grid_again_trains_nothing_and_more_of_it_only_what_is_new(killed, resumed):
    folder, _ = killed
    assert collect(GRID, folder).progress.n_now == 0
    wider = Grid(models=GRID.models, n_epochs=(1,), seeds=(0, 1, 2), image_side=8, batch_size=512)
    progress = run_collection(wider, folder)
    assert (progress.n_before, progress.n_now) == (2, 1)
    assert len(read_collection(GRID, folder).runs) == 4


def test_a_folder_keeps_to_what_its_runs_share(killed, resumed):
    folder, _ = killed
    other = Grid(models=GRID.models, image_side=8, batch_size=64)
    with pytest.raises(InputError, match=r"has runs with batch_size 512, not 64: give another folder\."):
        run_collection(other, folder)


def test_a_run_that_diverges_is_a_result_and_stops_nobody(tmp_path):
    grid = Grid(models=("cifar_resnet20",), image_side=8, batch_size=512, learning_rate=1e30)
    collection = collect(grid, tmp_path / "out")
    assert collection.progress.n_failed == 1
    assert "try a smaller one" in collection.runs[0].error


def test_cpus_of_a_task_are_refused_where_there_is_no_cluster(tmp_path):
    with pytest.raises(InputError, match="apply to the CPUs of a Ray cluster only"):
        run_collection(GRID, tmp_path / "out", cpus_per_task=1)


def test_a_log_on_another_machine_s_disk_is_missed_and_named(killed, resumed, tmp_path):
    folder, _ = killed
    moved = tmp_path / "out"
    moved.mkdir()
    for name in ("common.json", "runs.db"):
        (moved / name).write_bytes((folder / name).read_bytes())
    for run in read_collection(GRID, moved).runs:
        assert "wrote it to a folder that is not shared" in run.error
        assert run.test_accuracy is not None


def test_a_task_waits_for_another_process_at_the_same_run_and_finds_it_finished(killed, resumed):
    folder, _ = killed
    first, answers = GRID.tasks()[0], []
    with (run_folder(folder, first.settings) / ".campaign").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: answers.append(train_task(first.settings, folder=str(folder))))
        waiting.start()
        waiting.join(timeout=0.5)
        assert not answers
    waiting.join(timeout=60)
    (stored,) = [json.loads(value) for _, key, value, _ in rows(folder / "runs.db") if key == first.key]
    assert answers[0]["total_s"] == stored["total_s"], "nothing was trained again"
