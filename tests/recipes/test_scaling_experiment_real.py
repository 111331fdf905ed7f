"""A scaling experiment that really runs: 64 digits on one and two processes, killed in its middle."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traincast.api.logs import read_log
from traincast.api.scaling_cells import last_batch_size
from traincast.api.scaling_experiment import plan_scaling, run_scaling
from traincast.recipes.scaling_experiment.result import read_run
from traincast.recipes.scaling_experiment.settings import Cell

ASKED = {"batch_sizes": (16,), "n_devices": (1, 2), "n_samples": 60, "image_side": 8}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("TRAINCAST_HOME", str(tmp_path_factory.mktemp("home")))
    yield
    patch.undo()


def processes_in(folder):
    """Who has this folder on its command line, besides us."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has just ended
            continue
    return [pid for pid in found if pid != os.getpid()]


def wait_for(condition, *, longest_s=120.0):
    until_s = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


@pytest.fixture(scope="module")
def killed_and_resumed(home, tmp_path_factory):
    """The folder, the first run's file as the killed command left it, and what the second command found."""
    folder = tmp_path_factory.mktemp("scaling") / "out"
    line = [sys.executable, "-m", "traincast", "train", "scaling", "--batch-sizes", "16", "--samples", "60"]
    child = subprocess.Popen([*line, "--image-side", "8", "--out", str(folder)], stdout=subprocess.DEVNULL)
    first = folder / "1x16.json"
    wait_for(first.exists)
    child.send_signal(signal.SIGKILL)
    child.wait()
    wait_for(lambda: not processes_in(folder))
    left = first.read_bytes(), first.stat().st_mtime_ns
    n_done = len(list(folder.glob("*x*.json")))
    result = run_scaling(plan_scaling("cifar_resnet20", **ASKED, out=folder))
    return folder, (left, n_done), result


def test_a_killed_experiment_goes_on_and_keeps_what_was_done(killed_and_resumed):
    folder, (left, n_done), result = killed_and_resumed
    assert n_done < 3
    first = folder / "1x16.json"
    assert (first.read_bytes(), first.stat().st_mtime_ns) == left
    assert [run.cell.name for run in result.runs] == ["1x16", "2x8", "2x16"]
    assert processes_in(folder) == []


def test_every_run_tells_its_epochs_parts_and_split(killed_and_resumed):
    *_, result = killed_and_resumed
    for run in result.runs:
        assert len(run.epochs_s) == 2
        assert sum(run.parts_s.values()) <= run.epoch_s * 1.0001, "processes take the mean, the epoch the slowest"
        assert run.input_s + run.compute_s + run.communication_s == pytest.approx(run.epoch_s)
        assert (run.split is None) == (run.cell.n_devices == 1)
        if run.split is not None:
            assert run.split.gradient_bytes == 4 * run.n_parameters
            assert run.split.peak_bus_bytes_per_s > 0
    assert result.failures == ()
    assert [len(result.weak.rows), len(result.strong.rows)] == [2, 2]


def test_every_run_has_a_log_of_all_its_steps(killed_and_resumed):
    folder, _, result = killed_and_resumed
    for run in result.runs:
        loss = read_log(folder / f"{run.cell.name}.log.csv").find("loss", "train")
        assert loss.steps.tolist() == list(range(1, 2 * run.n_steps + 1))
        rows = (folder / f"{run.cell.name}.log.csv").read_text().splitlines()[1:]
        assert [int(row.split(",")[0]) for row in rows] == [1] * run.n_steps + [2] * run.n_steps


def test_the_forecast_of_an_uncalibrated_machine_says_what_is_missing(home):
    forecast = plan_scaling("cifar_resnet20", **ASKED).forecast
    assert not any(each.cell.n_devices == 2 for each in forecast.cells)
    assert any("calibrate --processes" in text for text in forecast.warnings)


def test_an_epoch_is_its_full_steps_and_a_last_smaller_one():
    whole = plan_scaling("cifar_resnet20", **{**ASKED, "n_samples": 64}, on="T4").forecast
    part = plan_scaling("cifar_resnet20", **{**ASKED, "n_samples": 60}, on="T4").forecast
    for cell in (Cell(1, 16), Cell(2, 16)):
        assert whole.of(cell).n_steps == part.of(cell).n_steps
        assert part.of(cell).epoch_s <= whole.of(cell).epoch_s
    assert whole.of(Cell(1, 16)).communication_s == 0 < whole.of(Cell(2, 16)).communication_s
    assert (last_batch_size(Cell(2, 16), 60), last_batch_size(Cell(2, 16), 64)) == (28, 0)
    assert last_batch_size(Cell(2, 16), 65) == 2, "one sample is left: the other process takes one again"


def test_batches_grow_fourfold_until_the_data_end():
    experiment = plan_scaling(
        "cifar_resnet20", batch_sizes=(8, ...), n_devices=(1, 2), n_samples=300, image_side=8, on="T4"
    )
    assert experiment.settings.batch_sizes == (8, 32, 128)


def test_batches_grow_until_memory_ends(monkeypatch):
    monkeypatch.setattr("traincast.api.scaling_cells.device_memory_bytes", lambda settings, on: 310 * 2**20)
    experiment = plan_scaling("cifar_resnet20", batch_sizes=(8, ...), n_devices=(1, 2))
    assert experiment.settings.batch_sizes == (8, 32)
    assert experiment.notes[0] == "Batches end at 32 a device: memory would not do for 128."


def test_a_run_is_read_with_its_cell(killed_and_resumed):
    folder, *_ = killed_and_resumed
    assert read_run(folder, Cell(2, 8)).cell == Cell(2, 8)
