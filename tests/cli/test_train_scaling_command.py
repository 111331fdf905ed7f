"""`traincast train scaling`, on an experiment that is done already: no process is started here."""

import json

import pytest
from pages import read_page

from traincast.__main__ import run
from traincast.recipes.scaling_experiment.result import CellRun, Split, write_failure, write_run
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
from traincast.records.environment import n_usable_cores

ASKED = ["train", "scaling", "--batch-sizes", "16,32", "--samples", "64", "--image-side", "8", "--out", "done"]
SECONDS = {(1, 16): 8.0, (1, 32): 6.0, (2, 8): 10.0, (2, 16): 5.0}


@pytest.fixture(autouse=True)
def done(tmp_path, monkeypatch):
    """A folder in which all was run; two devices had no memory for 32 samples each."""
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    settings = ScalingSettings(
        model="cifar_resnet20",
        data="digits",
        batch_sizes=(16, 32),
        n_threads=max(1, n_usable_cores() // 2),
        n_samples=64,
        image_side=8,
    )
    folder = tmp_path / "done"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings.to_dict()))
    split = Split(
        step_s=1.0,
        compute_s=0.75,
        exposed_s=0.25,
        all_reduce_s=0.125,
        gradient_bytes=10**6,
        n_buckets=1,
        peak_bus_bytes_per_s=16e6,
    )
    for (n_devices, batch_size), epoch_s in SECONDS.items():
        found = CellRun(
            cell=Cell(n_devices, batch_size),
            n_samples=64,
            n_parameters=250_000,
            epochs_s=(20.0, epoch_s),
            parts_s={"input": 0.5, "forward": 1.0, "loss": 0.1, "backward": 2.0, "optimizer": 0.1},
            loss=2.0,
            accuracy=0.25,
            device="a CPU",
            backend="gloo",
            split=split if n_devices > 1 else None,
        )
        write_run(folder, found)
    write_failure(folder, Cell(2, 32), "Out of memory (out of memory).")
    return folder


def lines_after(text, title):
    """The rows of a table, split at two spaces."""
    lines = text.split(title)[1].splitlines()[2:]
    return [line.split("  ") for line in lines[: lines.index("")]] if "" in lines else lines


def cells(text, title):
    return [[cell.strip() for cell in line if cell.strip()] for line in lines_after(text, title)]


def test_the_three_tables_come_in_both_definitions(capsys):
    assert run(ASKED) == 0
    out = capsys.readouterr().out
    assert out.index("forecast, before anything runs") < out.index("1. Time and speedup")
    weak = cells(out, "1. Time and speedup: the batch of a device stays (weak)")
    assert weak[1] == ["16", "2", "32", "2", "20.0 s", "5.00 s", "1.60", "80.0 %", "40.0 %"]
    strong = cells(out, "1. Time and speedup: the batch of all devices stays (strong)")
    assert strong[1] == ["16", "2", "8", "4", "20.0 s", "10.0 s", "0.80", "40.0 %", "150.0 %"]
    parts = cells(out, "2. Compute and communication of an epoch: the batch of a device stays (weak)")
    assert parts[1] == ["16", "2", "5.00 s", "500 ms", "4.00 s", "500 ms", "4.00 s", "1.00 s"]
    rates = cells(out, "3. Bandwidth: the batch of a device stays (weak)")
    # 2 MB sent in 0.5 s that show, in 1 s that are assumed; a step's 1 MB alone in 0.125 s, on a link of 16 MB/s.
    shares = ["4.00 MB/s", "25.0 %", "2.00 MB/s", "12.5 %", "8.00 MB/s", "50.0 %", "16.0 MB/s"]
    assert rates == [["16", "2", "1.91 MiB", *shares]]
    assert "2 devices with 32 samples each: Out of memory (out of memory)." in out
    told = out.split("Predicted and measured")[1]
    assert told.count("This machine has not been calibrated") == 4  # a row for each run, none of dashes alone


def test_a_named_link_takes_the_place_of_the_measured_one(capsys):
    assert run([*ASKED, "--link", "8MB/s"]) == 0
    (row,) = cells(capsys.readouterr().out, "3. Bandwidth: the batch of a device stays (weak)")
    assert row[4] == "50.0 %"
    assert row[-1] == "8.00 MB/s"


def test_json_has_what_the_tables_show_and_scale_reads_the_epochs(capsys):
    assert run([*ASKED, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["batch_sizes"] == [16, 32]
    assert [row["speedup"] for row in answer["strong"]["rows"]] == pytest.approx([1.0, 0.8, 1.0, 1.2])
    assert answer["failures"] == [{"n_devices": 2, "batch_size": 32, "error": "Out of memory (out of memory)."}]
    assert run(["scale", "--measured", "done/measured.csv", "--parameters", "250000"]) == 0
    assert "Measured epochs of measured.csv" in capsys.readouterr().out


def test_the_page_has_the_charts(capsys, tmp_path):
    page = tmp_path / "page.html"
    assert run([*ASKED, "--html", str(page)]) == 0
    assert "Speedup: the batch of all devices stays (strong)" in page.read_text()


def test_only_the_forecast_runs_nothing_and_takes_any_device(capsys, tmp_path):
    line = ["train", "scaling", "--batch-sizes", "32,...", "--n-devices", "1,2,4", "--on", "T4", "--forecast-only"]
    assert run([*line, "--image-side", "8", "--out", "new"]) == 0
    out = capsys.readouterr().out
    assert "Scaling of cifar_resnet20 on T4: 9 runs" in out
    assert "Reading images is not included in the forecast" in out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch-sizes", "32,x"], "--batch-sizes '32,x' is not a list of whole numbers"),
        (["--n-devices", "2,4"], "start the numbers of devices with 1, not 2"),
        (["--batch-sizes", "2000"], "An epoch of 64 samples has no full batch of 2,000."),
        (["--samples", "9999"], "'digits' has 1,438 training images, fewer than the 9,999 requested."),
        (["--epochs", "1"], "The first epoch is not counted"),
        (["--seed", "1"], "'done' has runs with seed 0, not 1: give another folder."),
        (["--model", "cifar_resnet21"], "There is no recipe for the model 'cifar_resnet21'."),
        (["--device", "cuda", "--n-devices", "1,99"], "torch sees"),
        (["--link", "string"], "No link named 'string'."),
        (["--on", "nonsense"], "No device named 'nonsense'"),
        (["--on", "nonsense", "--forecast-only"], "No device named 'nonsense'"),
        (["--learning-rate", "-0.1"], "--learning-rate cannot be -0.1"),
        (["--learning-rate", "nan"], "--learning-rate cannot be nan"),
        (["--optimizer", "none"], "none"),
        (["--precision", "tf32"], "tf32 is a mode of NVIDIA GPUs"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing_behind(capsys, tmp_path, arguments, words):
    assert run([*ASKED, *arguments]) == 2
    assert words in capsys.readouterr().err
    if arguments[0] != "--seed":
        assert run([*ASKED[:-1], "new", *arguments]) == 2
        assert not (tmp_path / "new").exists()


@pytest.mark.skipif(n_usable_cores() < 2, reason="one process on one core is always forecast")
def test_where_no_run_can_be_forecast_there_is_no_total(capsys):
    """This machine has not been calibrated with two processes."""
    assert run([*ASKED, "--forecast-only", "--json"]) == 0
    forecast = json.loads(capsys.readouterr().out)["forecast"]
    assert (forecast["cells"], forecast["total_s"], forecast["peak_memory_bytes"]) == ([], None, None)
    assert run([*ASKED, "--forecast-only"]) == 0
    out = capsys.readouterr().out
    assert "None of these runs can be forecast; the warnings say why" in out
    assert "run 'traincast calibrate --processes 2' first" in out
    assert "compute" not in out


def test_a_forecast_has_its_cost_and_memory(capsys):
    assert run([*ASKED, "--on", "T4", "--price", "0.5", "--forecast-only", "--json"]) == 0
    forecast = json.loads(capsys.readouterr().out)["forecast"]
    costs = [0.5 * cell["cell"]["n_devices"] * cell["epoch_s"] / 3600 for cell in forecast["cells"]]
    assert forecast["cost_usd"] == pytest.approx(2 * sum(costs))  # two epochs each
    assert forecast["peak_memory_bytes"] == max(cell["peak_memory_bytes"] for cell in forecast["cells"])
    assert run([*ASKED, "--on", "T4", "--price", "500", "--forecast-only"]) == 0
    out = capsys.readouterr().out
    for words in ("In all ", " and $", " for all epochs of these runs, at most ", "memory a device", "cost"):
        assert words in out


def test_a_forecast_for_elsewhere_stands_beside_that_for_here(capsys, tmp_path):
    page = tmp_path / "page.html"
    assert run([*ASKED, "--on", "T4", "--json", "--html", str(page)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["forecast"]["on"], answer["forecast_here"]["on"]) == ("T4", "this-machine")
    assert "Forecast of an epoch of each run on T4" in page.read_text()


def test_a_batch_that_cannot_be_divided_is_said(capsys):
    line = ["train", "scaling", "--batch-sizes", "33", "--n-devices", "1,2", "--on", "T4", "--forecast-only"]
    assert run([*line, "--samples", "99", "--image-side", "8"]) == 0
    assert "Left out of strong scaling: a batch of 33 cannot be divided among 2 devices." in capsys.readouterr().out


def test_runs_whose_memory_ended_say_how_to_try_again(capsys):
    assert run(ASKED) == 0
    assert "--retry-failed tries these again." in capsys.readouterr().out


def test_the_page_has_every_forecast_with_its_warnings_and_cost(tmp_path):
    assert run([*ASKED, "--on", "T4", "--price", "1", "--html", "page.html"]) == 0
    page = read_page(tmp_path / "page.html")
    assert any(note.startswith("Forecast for this-machine: Warning: No forecast for 1 device: ") for note in page.notes)
    assert any(note.startswith("Forecast for T4: In all") and "$" in note for note in page.notes)
    assert len(page.tables[-1]) == len(page.tables[-2]) == 5  # a row a run
    assert run([*ASKED, "--on", "T4", "--forecast-only", "--html", "before.html"]) == 0
    assert read_page(tmp_path / "before.html").n_points("An epoch of each run on T4") == 10
