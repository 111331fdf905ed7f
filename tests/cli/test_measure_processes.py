"""`traincast measure --processes`: what is refused, and what is shown of a measurement."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from traincast.__main__ import run
from traincast.api.measuring import forecast_of
from traincast.hardware.device import Device
from traincast.hardware.this_machine import write_profile
from traincast.measurement.processes.link_fit import fit_link, ring_bytes
from traincast.measurement.processes.link_result import AllReduceMeasurement, AllReduceRow
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.measurement.statistics import summarise
from traincast.records.environment import Environment
from traincast.records.store import Store
from traincast.report.json_ import to_json
from traincast.report.text import to_text
from traincast.views.processes import link_document, steps_document, with_link

HERE = Environment(
    device="a CPU",
    device_kind="cpu",
    host="here",
    n_threads=1,
    n_cores=2,
    versions={"torch": "2.13.0"},
    clocks={},
)
MS = 1e-3
SIZES = (4096, 1_000_000)


def link() -> AllReduceMeasurement:
    """A millisecond of latency, 1 GB/s."""
    seconds = [2 * MS + ring_bytes(size, 2) / 1e9 for size in SIZES]
    return AllReduceMeasurement(
        n_processes=2,
        backend="gloo",
        rows=tuple(
            AllReduceRow(n_bytes=size, n_processes=2, seconds=summarise([taken_s]))
            for size, taken_s in zip(SIZES, seconds, strict=True)
        ),
        link=fit_link(2, SIZES, [[taken_s] for taken_s in seconds]),
        environment=HERE,
    )


def steps() -> ProcessesMeasurement:
    """Two buckets of 1 MB and 3 MB: a step of 50 ms, of which one process alone would need 30 ms."""
    return ProcessesMeasurement(
        model="a model",
        n_processes=2,
        n_local=2,
        batch_size=64,
        optimizer="sgd",
        precision="fp32",
        device="cpu",
        backend="gloo",
        n_threads=1,
        step=summarise([50 * MS]),
        compute=summarise([41 * MS]),
        crowded=summarise([38 * MS]),
        alone=summarise([30 * MS]),
        exposed=summarise([9 * MS]),
        all_reduce=summarise([8 * MS]),
        phases={},
        bucket_bytes=(1_000_000, 3_000_000),
        has_buffers=False,
        peak_bus_bytes_per_s=1e9,
        environment=HERE,
        warnings=("Process 0: The loss was nan at step 1.",),
    )


def test_a_step_is_shown_with_its_parts_and_what_they_mean():
    text = to_text(steps_document(steps(), None, "No forecast beside it: it rained."))
    assert "a model in 2 processes, batch 64" in text
    assert "32 samples each, 1 thread each" in text
    assert "1,280.0 samples/s; 60.0 % of 2 times one process alone." in text
    assert "3.81 MiB in 2 buckets; reduced alone they pass at 500 MB/s, 50.0 % of what one large message" in text
    assert "Warning: Process 0: The loss was nan" in text
    assert "No forecast beside it: it rained." in text
    assert "forecast of the step" not in text


def test_the_forecast_of_as_many_processes_of_this_machine_stands_beside_the_step(home):
    shared = Device(
        name="my-cpu",
        kind="cpu",
        fp32_flop_per_s=1e11,
        memory_bytes=2**34,
        memory_bytes_per_s=1e10,
        prices=(("call.forward", 2e-5), ("flop.linear", 1e-11)),
        price_log_sd=0.1,
        link_bytes_per_s=1e9,
        link_latency_s=1 * MS,
        waiting_fraction=0.1,
    )
    write_profile(shared, 2)
    measured = replace(steps(), model="mnist_cnn")
    forecast, why_not = forecast_of(measured, "mnist_cnn")
    assert why_not == ""
    assert (forecast.place, forecast.batch_size) == ("2xthis-machine", 64)
    assert forecast.exposed_communication_s > 2 * MS  # a message there and one back
    text = to_text(steps_document(measured, forecast))
    assert "forecast of the step" in text
    assert "traincast forecast " in text


def test_without_a_calibration_of_so_many_processes_the_step_says_how_to_get_its_forecast(home):
    forecast, why_not = forecast_of(steps(), "mnist_cnn")
    assert forecast is None
    assert "run 'traincast calibrate --processes 2' first" in why_not
    _, elsewhere = forecast_of(replace(steps(), n_local=1), "mnist_cnn")
    assert "several machines" in elsewhere


def test_the_link_stands_below_the_steps_where_both_were_measured():
    document = with_link(steps_document(steps(), None), link())
    assert [table.title for table in document.tables] == ["Steps", "All-reduce"]


def test_a_link_is_shown_by_message_size_with_what_was_fitted():
    text = to_text(link_document(link()))
    assert "All-reduce between 2 processes" in text
    assert "Fitted: a latency of 1.00 ms" in text
    assert "1.00 GB/s" in text


def test_results_can_be_written_as_json():
    assert '"bandwidth_utilisation_fraction": 0.5' in to_json(steps().to_dict())
    assert "latency_s" in to_json(link().to_dict())


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))


@pytest.fixture
def outside(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


def refused(capsys, *words):
    assert run(["measure", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--processes 2", "name a model, or ask for the link"),
        ("mnist_cnn --processes 2", "samples of a step, over all processes"),
        ("--all-reduce", "say how many, such as 2"),
        ("--processes 1 --all-reduce", "--processes cannot be 1: give a whole number of at least 2"),
        ("--batch 8 --processes 2 --all-reduce", "--batch cannot be 8: the link alone trains nothing, so name a model"),
        ("--image-size 8 --processes 2 --all-reduce", "--image-size cannot be 8: the link alone trains nothing"),
        ("mnist_cnn --batch 7 --processes 2", "a multiple of 2"),
        ("mnist_cnn --batch 8 --steps 0 --processes 2", "--steps cannot be 0"),
        ("mnist_cnn --batch 8 --processes 2 --compiled", "--compiled does not go with --processes: it is for a single"),
    ],
)
def test_what_cannot_be_measured_is_told_at_once(capsys, words, told):
    assert told in refused(capsys, *words.split())


def test_a_process_that_torchrun_started_is_one_of_several(monkeypatch, capsys):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    line = ["mnist_cnn", "--batch", "8"]
    assert "torchrun has started the processes already" in refused(capsys, *line, "--processes", "2")
    assert "--repeat does not go with --processes" in refused(capsys, *line, "--repeat", "3")


def test_what_was_measured_until_ctrl_c_is_shown_and_kept_and_nobody_is_left_behind(tmp_path):
    """A real interrupt, to the command alone, as soon as it has told of a round."""
    asked = ["mnist_cnn", "--batch", "8", "--steps", "360"]
    line = ["measure", *asked, "--processes", "2", "--store", "kept.db", "--json"]
    with (tmp_path / "told").open("wb") as told, (tmp_path / "said").open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "traincast", *line],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=told,
            stderr=said,
        )
        deadline_s = time.monotonic() + 60
        while not any(tmp_path.glob("traincast-processes-*/partial.json")):
            assert child.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        workers = _descendants(child.pid)
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130, (tmp_path / "said").read_text()
    answer = json.loads((tmp_path / "told").read_text())
    assert answer["is_partial"]
    assert answer["warnings"][0] == f"Stopped after {answer['exposed']['n']} of 6 rounds."
    with Store(tmp_path / "kept.db") as store:
        (record,) = store.records()
    assert record.kind == "processes"
    assert record.values["is_partial"]
    assert len(workers) >= 3  # torchrun and two processes
    deadline_s = time.monotonic() + 20
    while any(_is_alive(pid) for pid in workers):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _descendants(pid):
    own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*own, *(below for child in own for below in _descendants(child))]


def _is_alive(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
