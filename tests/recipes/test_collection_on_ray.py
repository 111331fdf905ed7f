"""A collection on a real Ray cluster of this machine."""

import os
import signal
from pathlib import Path

import pytest

from traincast.api.collecting import collect, read_collection
from traincast.recipes.collection import Grid

pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files to the collector


def trainers(folder):
    """Processes that hold the lock of a run below this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = {str(number.readlink()) for number in (process / "fd").iterdir()}
        except OSError:  # it has just ended, or is not ours
            continue
        if any(path.startswith(str(folder)) and path.endswith("/.campaign") for path in held):
            found.append(int(process.name))
    return found


def test_workers_train_the_grid_and_one_that_is_killed_is_replaced(tmp_path):
    folder, killed = tmp_path / "out", []
    grid = Grid(models=("cifar_resnet20",), n_epochs=(3,), seeds=(0, 1), image_side=8, batch_size=512)

    def kill_one(progress):
        at_work = trainers(folder)
        if at_work and not killed:
            killed.append(at_work[0])
            os.kill(at_work[0], signal.SIGKILL)

    collection = collect(grid, folder, on_ray="local", cpus_per_task=1, on_progress=kill_one)
    assert killed
    assert (collection.progress.n_now, collection.progress.n_failed, collection.n_left) == (2, 0, 0)
    assert [run.n_steps for run in collection.runs] == [9, 9]
    assert all(run.log.exists() and run.curve is not None for run in collection.runs)
    here = read_collection(grid, folder)
    assert [run.test_accuracy for run in here.runs] == [run.test_accuracy for run in collection.runs]
