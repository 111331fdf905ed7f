"""`traincast calibrate` with a few of its benchmarks: from the command line to the profile and forecasts with it."""

import json
import tomllib

import pytest
import torch

from traincast.__main__ import run
from traincast.api import processes
from traincast.api.calibrating import Calibration
from traincast.api.machine_profile import gpu_profile
from traincast.calibration import timing
from traincast.calibration.gpu import GpuFigures
from traincast.calibration.timing import Effort
from traincast.hardware.catalog import find_device
from traincast.hardware.this_machine import write_profile
from traincast.report.text import to_text
from traincast.views.calibration import document_of

torch.set_num_threads(1)
FEW = ("linear-64-64", "many-small", "relu")
NETWORKS = ("residual-16", "block-256", "plain")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def short(monkeypatch, *names):
    """All that calibration does, with so few and short benchmarks that it takes a moment."""
    monkeypatch.setattr(timing, "FULL", Effort(n_rounds=1, budget_s=0.005, names=names))


def calibrate(*arguments):
    return run(["calibrate", *map(str, arguments)])


def test_the_profile_is_shown_kept_and_exported_and_forecasts_use_it(home, tmp_path, capsys, monkeypatch):
    short(monkeypatch, *FEW)
    exported, page = tmp_path / "mine.toml", tmp_path / "page.html"
    assert calibrate("--export", exported, "--html", page) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("This machine: ")
    assert "sustained products, fp32" in printed.out
    assert "flop.linear" in printed.out
    text = " ".join(printed.out.split())
    assert "'this-machine' now names this profile" in text
    assert f"Kept in {home / 'this-machine.toml'}" in text
    assert f"Wrote {exported}" in printed.err
    assert "What " in page.read_text(encoding="utf-8")
    (device,) = tomllib.loads(exported.read_text())["device"]
    assert run(["forecast", "mnist_cnn", "--on", device["name"], "--devices", str(exported), "--batch", "8"]) == 0
    assert run(["forecast", "mnist_cnn", "--on", "this-machine", "--batch", "8"]) == 0
    assert capsys.readouterr().out.count("calibrated") >= 2


def test_json_has_the_rates_in_base_units(capsys, monkeypatch):
    short(monkeypatch, *FEW)
    assert calibrate("--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["on"] == "this-machine"
    assert data["fp32_flop_per_s"] > 1e6
    assert data["price_s"]["flop.linear"] >= 0
    assert data["n_steps"] == len(timing.FULL.cases())


def test_two_processes_are_calibrated_forecast_and_measured_beside_their_forecast(home, tmp_path, capsys, monkeypatch):
    seen = []

    def watched(*arguments, **settings):
        seen.append(together(*arguments, **settings))
        return seen[-1]

    together = processes.time_together
    monkeypatch.setattr(processes, "time_together", watched)
    short(monkeypatch, "relu", *NETWORKS)
    for _ in range(3):  # what other jobs disturb may tell no bandwidth, and the command says to try again
        if calibrate("--processes", "2") == 0:
            break
        assert "calibrate again on a quiet machine" in capsys.readouterr().err
    out = " ".join(capsys.readouterr().out.split())
    assert "'2xthis-machine' now names this profile" in out
    assert [path.name for path in home.iterdir()] == ["this-machine-2.toml"]
    assert {one.benchmark for one in seen[-1].timings} == {"relu", *NETWORKS}
    reduced = {one.benchmark: one for one in seen[-1].reduced}
    assert set(reduced) == set(NETWORKS)
    assert len(reduced["block-256"].bucket_bytes) == 2
    assert [reduced[name].has_buffers for name in ("residual-16", "plain")] == [True, False]
    assert run(["forecast", "mnist_cnn", "--on", "2xthis-machine", "--batch", "8", "--json"]) == 0
    forecast = json.loads(capsys.readouterr().out)
    assert forecast["exposed_communication_s"] > 0
    store = str(tmp_path / "runs.db")
    assert run(["measure", "mnist_cnn", "--batch", "8", "--steps", "1", "--processes", "2", "--store", store]) == 0
    out = capsys.readouterr().out
    assert "forecast of the step" in out
    assert "traincast forecast " in out
    explain = ["explain", "mnist_cnn", "--batch", "8", "--on", "2xthis-machine", "--measured", store, "--json"]
    assert run(explain) == 0
    phases = {row["name"]: row["measured_s"] for row in json.loads(capsys.readouterr().out)["phases"]}
    assert "communication" in " ".join(phases)


def test_where_the_profile_or_its_copy_cannot_go_is_told_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(timing, "FULL", None)  # nothing is run
    assert calibrate("--export", tmp_path / "gone" / "mine.toml") == 2
    assert "gone' does not exist" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "file"))
    assert calibrate() == 2
    assert "set TRAINCAST_HOME" in capsys.readouterr().err


def test_a_profile_that_cannot_be_kept_is_shown_all_the_same(home, capsys, monkeypatch):
    short(monkeypatch, *FEW)
    real = timing.time_all

    def disk_fills(*arguments, **settings):
        (home / "this-machine.toml").mkdir()
        return real(*arguments, **settings)

    monkeypatch.setattr(timing, "time_all", disk_fills)
    assert calibrate() == 2
    printed = capsys.readouterr()
    assert "sustained products, fp32" in printed.out
    assert "now names this profile" not in printed.out
    assert "The profile was not kept. Cannot write" in printed.err


def figures(name):
    return GpuFigures(
        name=name,
        n_sm=40,
        memory_bytes=2**34,
        l2_bytes=None,
        clock_hz=None,
        flop_per_s={"fp32": 4e12, "tf32": 0.0, "fp16": 2e13, "bf16": 0.0},
        memory_bytes_per_s=2.5e11,
        launch_s=5e-6,
    )


def of_gpu(name):
    found = figures(name)
    return Calibration(device=gpu_profile(found), figures=found, path=None, mean_error=None, n_steps=0, seconds=1.0)


def test_of_a_listed_gpu_what_was_measured_is_shown_and_not_its_datasheet():
    found = of_gpu("Tesla T4")
    assert found.device.fp32_flop_per_s == find_device("T4").fp32_flop_per_s
    assert found.to_dict()["fp32_flop_per_s"] == 4e12
    assert "4.00 TFLOP/s" in to_text(document_of(found)).replace("Tflop/s", "TFLOP/s")


def test_the_profile_of_a_gpu_takes_no_other_place_and_has_a_name_of_its_own(home, capsys):
    home.mkdir()
    (home / "this-machine.toml").write_text("the profile of the CPU")
    write_profile(of_gpu("My own GPU").device)
    assert (home / "this-machine.toml").read_text() == "the profile of the CPU"
    assert find_device("this-gpu").name == "My own GPU"
    assert run(["forecast", "mnist_cnn", "--on", "this-gpu", "--batch", "8"]) == 0
    assert "My own GPU" in capsys.readouterr().out
    write_profile(of_gpu("Tesla T4").device)
    assert run(["forecast", "mnist_cnn", "--on", "2xthis-gpu", "--batch", "8"]) == 0
    assert "2xthis-gpu" in capsys.readouterr().out


def test_a_gpu_that_was_not_calibrated_says_how_to(capsys):
    assert run(["forecast", "mnist_cnn", "--on", "this-gpu", "--batch", "8"]) == 2
    assert "run 'traincast calibrate --device cuda' first" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_mistake_is_one_sentence(capsys):
    for arguments, words in [
        (["--device", "cuda"], "There is no CUDA device"),
        (["--device", "gpu"], "not on 'gpu'"),
        (["--processes", "0"], "--processes cannot be 0: give a whole number of at least 1"),
    ]:
        assert calibrate(*arguments) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
