"""A scaling experiment: which runs it has, what its tables say, and how it comes back after a kill."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scaling_samples import N_SAMPLES, RUNS, SETTINGS, sample_run

from traincast.errors import FileFormatError, InputError, MeasurementError
from traincast.launch import scaling_run
from traincast.recipes.data.images import LabeledImages, StoredImages
from traincast.recipes.kept_settings import keep_settings, release_settings
from traincast.recipes.scaling_experiment.analysis import compare, measured_csv
from traincast.recipes.scaling_experiment.result import CellRun, forget_failure, read_run, write_failure, write_run
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
from traincast.recipes.scaling_experiment.share import share_of_images
from traincast.recipes.scaling_experiment.split import joined
from traincast.scaling.measured_file import read_measured

rising = st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True).map(sorted)


def test_a_batch_size_is_that_of_a_device_and_that_of_all():
    assert [cell.name for cell in SETTINGS.cells(N_SAMPLES)] == ["1x10", "1x20", "2x5", "2x10", "2x20"]
    assert [cell.n_steps(N_SAMPLES) for cell in SETTINGS.cells(N_SAMPLES)] == [10, 5, 10, 5, 3]


@given(sizes=rising, counts=rising, n_samples=st.integers(1, 500))
def test_every_run_fills_a_step_and_can_be_compared_with_one_device(sizes, counts, n_samples):
    settings = dataclasses.replace(SETTINGS, batch_sizes=tuple(sizes), n_devices=(1, *(n + 1 for n in counts)))
    cells = settings.cells(n_samples)
    assert list(cells) == sorted(set(cells))
    alone = {cell.batch_size for cell in cells if cell.n_devices == 1}
    for cell in cells:
        assert cell.global_batch_size <= n_samples
        assert cell.batch_size in alone or cell.global_batch_size in alone
    asked = {Cell(n, size) for n in settings.n_devices for size in sizes}
    assert asked <= {*cells, *settings.left_out(n_samples)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_devices": (2, 4)}, "start the numbers of devices with 1, not 2"),
        ({"batch_sizes": (20, 10)}, "each once and rising"),
        ({"batch_sizes": ()}, "whole numbers from 1"),
        ({"n_epochs": 1}, "so 1 leaves none: train at least 2"),
        ({"device": "cuda:1"}, "not on 'cuda:1'"),
        ({"learning_rate": float("nan")}, "learning_rate cannot be nan"),
        ({"n_threads": 0}, "n_threads cannot be 0"),
    ],
)
def test_settings_that_cannot_be_are_said_in_one_sentence(change, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(SETTINGS, **change)


def numbered(n):
    pixels = torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1).expand(n, 3, 2, 2).contiguous()
    return LabeledImages(images=StoredImages(pixels), labels=torch.zeros(n, dtype=torch.int64), class_names=("a",))


@given(n=st.integers(1, 60), n_processes=st.integers(1, 5), batch=st.integers(1, 9))
def test_processes_share_all_images_evenly_and_make_the_same_number_of_steps(n, n_processes, batch):
    shares = [share_of_images(numbered(n), rank=rank, n_processes=n_processes) for rank in range(n_processes)]
    seen = [share.images.read(torch.arange(len(share.images)))[:, 0, 0, 0].tolist() for share in shares]
    assert {len(each) for each in seen} == {-(-n // n_processes)}
    assert {number for each in seen for number in each} == set(range(n))
    assert -(-len(seen[0]) // batch) == Cell(n_processes, batch).n_steps(n)


def row(comparison, batch_size, n_devices):
    (found,) = [
        each for each in comparison.rows if (each.batch_size, each.run.cell.n_devices) == (batch_size, n_devices)
    ]
    return found


def test_with_the_batch_of_a_device_fixed_eight_seconds_become_five_on_two():
    found = row(compare(SETTINGS, RUNS, "weak"), 10, 2)
    assert found.point.speedup == pytest.approx(1.6)
    assert found.point.efficiency_fraction == pytest.approx(0.8)
    assert found.serial_fraction == pytest.approx(0.4)  # Gustafson: (2 - 1.6) / (2 - 1)
    assert (found.point.compute_s, found.point.communication_s) == (4.0, 1.0)
    assert found.run.communication_s == pytest.approx(0.5)  # five steps, each 0.1 s longer for reducing
    assert found.run.compute_s == pytest.approx(5.0 - 0.5 - 0.5)  # and 0.5 s of input


def test_with_the_batch_of_all_fixed_two_devices_have_half_of_it_each():
    comparison = compare(SETTINGS, RUNS, "strong")
    assert [(each.batch_size, each.run.cell.name) for each in comparison.rows] == [
        (10, "1x10"), (10, "2x5"), (20, "1x20"), (20, "2x10"),
    ]  # fmt: skip
    found = row(comparison, 20, 2)
    assert found.point.speedup == pytest.approx(1.2)
    assert found.serial_fraction == pytest.approx((1 / 1.2 - 1 / 2) / (1 - 1 / 2))  # Karp and Flatt
    assert (found.point.compute_s, found.point.communication_s) == (3.0, 2.0)


def test_the_share_of_the_link_is_told_for_both_kinds_of_communication():
    found = row(compare(SETTINGS, RUNS, "weak"), 10, 2)
    # A ring of two sends the 4,000 bytes of the gradient once a step, five times an epoch.
    assert found.run.bytes_sent == 20_000
    assert found.assumed_bytes_per_s == pytest.approx(20_000 / 1.0)
    assert found.exposed_bytes_per_s == pytest.approx(20_000 / 0.5)
    assert found.reduced_bytes_per_s == pytest.approx(4_000 / 0.05)
    assert found.of_link(found.reduced_bytes_per_s) == pytest.approx(0.5)
    named = row(compare(SETTINGS, RUNS, "weak", link_bytes_per_s=80e3), 10, 2)
    assert named.of_link(named.exposed_bytes_per_s) == pytest.approx(0.5)


def test_communication_that_noise_leaves_below_zero_has_no_rate():
    runs = [sample_run(1, 10, 8.0), sample_run(2, 10, 3.0, exposed_s=-0.01)]
    found = row(compare(SETTINGS, runs, "weak"), 10, 2)
    assert (found.exposed_bytes_per_s, found.assumed_bytes_per_s) == (None, None)
    assert found.run.communication_s < 0
    assert "Faster than linear" in compare(SETTINGS, runs, "weak").warnings[0]


def test_a_batch_whose_run_on_one_device_is_missing_is_left_out_and_said():
    comparison = compare(SETTINGS, RUNS[:1] + RUNS[2:], "weak")
    assert {each.batch_size for each in comparison.rows} == {10}
    assert comparison.warnings[0] == "Batch 20 has no single-device row to compare with and is left out."
    assert compare(SETTINGS, RUNS[2:], "weak").rows == ()


def test_measured_epochs_are_what_scale_reads(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(measured_csv(RUNS))
    rows = read_measured(path, n_samples=N_SAMPLES)
    assert [(each.batch_size, each.n_devices, each.epoch_s) for each in rows] == [
        (10, 1, 8.0), (20, 1, 6.0), (10, 2, 10.0), (20, 2, 5.0), (40, 2, 4.0),
    ]  # fmt: skip


def test_reducing_is_what_steps_take_more_round_by_round():
    first = {
        "step": [3.0, 5.0, 9.0],
        "compute": [2.0, 4.5, 6.0],
        "all_reduce": [0.1, 0.3, 0.2],
        "large": [1.0, 2.0, 4.0],
    }
    second = {name: [value + 1 for value in values] for name, values in first.items()}
    found = joined([first, second], bucket_bytes=(100, 300))
    assert found.exposed_s == 1.0  # of 1.0, 0.5 and 3.0
    assert (found.step_s, found.compute_s) == (5.5, 5.0)  # the mean of both processes
    assert found.all_reduce_s == pytest.approx(1.2)  # until the slower one
    assert (found.gradient_bytes, found.n_buckets) == (400, 2)
    assert found.peak_bus_bytes_per_s == pytest.approx(2**24 / 3.0)


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    for run in RUNS:
        write_run(tmp_path, run)
        assert read_run(tmp_path, run.cell) == run
    assert read_run(tmp_path, Cell(4, 10)) is None
    write_failure(tmp_path, Cell(4, 10), "Out of memory.")
    assert read_run(tmp_path, Cell(4, 10)) == "Out of memory."
    (tmp_path / "1x10.json").write_text('{"run": {}}')
    with pytest.raises(FileFormatError, match="delete it, and it is run again"):
        read_run(tmp_path, Cell(1, 10))


def test_a_run_that_failed_is_forgotten_where_it_is_to_be_tried_again(tmp_path):
    write_run(tmp_path, RUNS[0])
    write_failure(tmp_path, Cell(4, 10), "Out of memory.")
    for cell in (RUNS[0].cell, Cell(4, 10), Cell(8, 10)):
        forget_failure(tmp_path, cell)
    assert read_run(tmp_path, RUNS[0].cell) == RUNS[0]
    assert read_run(tmp_path, Cell(4, 10)) is None


def test_settings_of_which_nothing_came_are_given_up(tmp_path):
    path = tmp_path / "settings.json"
    (tmp_path / ".settings.json.7.tmp").write_text("half")  # another command is just beginning
    keep_settings(path, {"rate": 1})
    release_settings(path)
    keep_settings(path, {"rate": 2})
    (tmp_path / "1x10.json").write_text("a result")
    release_settings(path)
    with pytest.raises(InputError, match="has runs with rate 2, not 1"):
        keep_settings(path, {"rate": 1})


def test_settings_survive_their_file_and_a_folder_keeps_to_them(tmp_path):
    assert ScalingSettings.from_dict(SETTINGS.to_dict()) == SETTINGS
    path = tmp_path / "new" / "settings.json"
    keep_settings(path, SETTINGS.to_dict())
    keep_settings(path, SETTINGS.to_dict())
    with pytest.raises(InputError, match=r"has runs with seed 0, not 1: give another folder\."):
        keep_settings(path, dataclasses.replace(SETTINGS, seed=1).to_dict())
    with pytest.raises(InputError, match="is not empty"):
        keep_settings(tmp_path / "settings.json", SETTINGS.to_dict())
    with pytest.raises(InputError, match="cannot be made"):
        keep_settings(path / "below" / "settings.json", SETTINGS.to_dict())
    path.write_text("[1")
    with pytest.raises(FileFormatError, match="cannot be read as JSON"):
        keep_settings(path, SETTINGS.to_dict())


class Launcher:
    """Stands in for torchrun on a machine with memory for ten samples a device; remembers what it was asked."""

    def __init__(self, folder, *, kills=False):
        self.folder, self.kills, self.asked = folder, kills, []

    def __call__(self, module, arguments, *, n_processes, n_threads):
        self.asked.append((n_processes, n_threads))
        for run in RUNS:
            if run.cell.n_devices != n_processes or read_run(self.folder, run.cell) is not None:
                continue
            if run.cell.batch_size > 10:
                if not self.kills:
                    write_failure(self.folder, run.cell, "Out of memory (CUDA out of memory).")
                raise MeasurementError("Process 1 of 2 was killed (SIGKILL); the others were stopped.")
            write_run(self.folder, run)


def test_where_memory_ends_larger_batches_are_not_tried_and_the_others_stay(tmp_path, monkeypatch):
    launcher, told = Launcher(tmp_path), []
    monkeypatch.setattr(scaling_run, "run_module", launcher)
    cells = (*SETTINGS.cells(N_SAMPLES), Cell(2, 40))
    scaling_run.run_cells(SETTINGS, cells, tmp_path, on_progress=lambda *count: told.append(count))
    assert launcher.asked == [(1, 1), (2, 1)]
    assert read_run(tmp_path, Cell(2, 20)) == "Out of memory (CUDA out of memory)."
    assert read_run(tmp_path, Cell(2, 40)) == "Not tried: memory ended at 20 samples a device."
    assert isinstance(read_run(tmp_path, Cell(2, 10)), CellRun)
    assert (told[0], told[-1]) == ((0, 6), (6, 6))
    scaling_run.run_cells(SETTINGS, cells, tmp_path)
    assert len(launcher.asked) == 2, "what is known is not tried again"


def test_a_process_that_dies_without_a_word_ends_the_experiment_and_what_is_done_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling_run, "run_module", Launcher(tmp_path, kills=True))
    with pytest.raises(MeasurementError, match="was killed"):
        scaling_run.run_cells(SETTINGS, SETTINGS.cells(N_SAMPLES), tmp_path)
    assert isinstance(read_run(tmp_path, Cell(1, 10)), CellRun)
    assert read_run(tmp_path, Cell(1, 20)) is None
