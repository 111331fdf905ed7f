"""Odd numbers, names and paths end in one sentence and exit code 2, wherever they come from."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.errors import TraincastError

FULL = Path("/dev/full")
HALF, NUL, LONG, DIGITS = "res\udcffnet", "res\0net", "m" * 5000, "9" * 5000
FORECAST = ["forecast", "resnet50", "--on", "T4", "--batch", "64"]
LINES = [
    *(["forecast", name, "--on", "T4", "--batch", "64"] for name in (HALF, NUL, LONG, f"{LONG}.onnx", f"{LONG}.py:f")),
    *(["forecast", "resnet50", "--on", name, "--batch", "64"] for name in (HALF, NUL, LONG, f"{DIGITS}xT4")),
    *(["forecast", f"{name}.toml"] for name in (NUL, HALF, LONG)),
    [*FORECAST, "--html", f"{LONG}.html"],
    [*FORECAST, "--devices", LONG],
    [*FORECAST, "--region", HALF],
    [*FORECAST, "--samples", "1000", "--input-samples-per-s", "1e-320"],
    [*FORECAST, "--price", "1e-320"],
    [*FORECAST, "--method", "paleo", "--ppp", "1e-320"],
    ["forecast", "resnet50", "--on", "T4", "--batch", DIGITS],
    ["plan", "resnet50", "--samples", "1000", "--provider", HALF],
    ["plan", "resnet50", "--samples", DIGITS],
    ["layers", "resnet50", "--top", DIGITS],
    ["layers", "resnet50", "--top", "9" * 1000],
    ["serve", "--port", DIGITS],
    ["converge", HALF],
    ["converge", LONG],
    ["watch", NUL],
    ["measure", f"{LONG}.py:f", "--batch", "8"],
    ["simulate", LONG, "--cluster", "4xT4"],
    ["simulate", "jobs.csv", "--cluster", "4xT4", "--failure", DIGITS],
    ["records", NUL],
    ["devices", LONG],
    [LONG],
    [*FORECAST, f"--{LONG}"],
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: ascii(" ".join(line))[:40])
def test_an_odd_word_on_the_command_line_is_one_short_sentence(line, capsys):
    assert run(line) == 2
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert told.count("\n") == 1
    assert len(told) < 300


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("batch = [64, 64]", None),
        (f"batch = {DIGITS}", "Job file 'job.toml' is not TOML: it has a whole number of thousands of digits."),
        ('batch = 64\nprecision = "\\u0000"', ": precision cannot be '\\x00': give text without null characters"),
        (f'batch = 64\noptimizer = "{LONG}"', "optimizer cannot be 'mmm"),
        ("batch = 64\naccumulate = 1e-320", "training.accumulate cannot be"),
    ],
)
def test_an_odd_value_in_a_job_file_is_one_short_sentence(written, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(f'model = "resnet50"\n[cluster]\non = "T4"\n[training]\n{written}\n')
    code = run(["forecast", "job.toml"])
    error = capsys.readouterr().err
    if told is None:  # the same batch twice is asked once
        assert (code, error) == (0, "")
        return
    assert code == 2
    assert told in error
    assert len(error) < 300


PYTHON = {
    "split": lambda: tc.converge("run.csv", split=np.zeros(3)),
    "like": lambda: tc.fit_curve([1, 2, 3, 4, 5], [5.0, 4, 3, 2, 1], like=np.zeros(3)),
    "steps": lambda: tc.fit_curve([1, 2, 3, 4, 10**5000], [5.0, 4, 3, 2, 1]),
    "failure_s": lambda: tc.simulate("jobs.csv", cluster="4xT4", failure_s=10**400),
    "on_progress": lambda: tc.read_log("run.csv", on_progress=5),
    "path": lambda: tc.read_log("run\0.csv"),
    "batch_size": lambda: tc.forecast("resnet50", on="T4", batch_size=10**5000),
    "input_samples_per_s": lambda: tc.forecast("resnet50", on="T4", batch_size=8, input_samples_per_s=1e-320),
    "null character": lambda: tc.load_model("alexnet").save("le\0net.trace"),
}


@pytest.mark.parametrize("name", PYTHON)
def test_an_odd_argument_is_one_short_sentence(name):
    with pytest.raises(TraincastError) as told:
        PYTHON[name]()
    assert name in str(told.value)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize("architectures", ["5", "[5]", '{"a": 1}', '"BertModel"'])
def test_architectures_of_another_type_are_told(architectures, capsys, tmp_path):
    (tmp_path / "config.json").write_text(f'{{"model_type": "bert", "architectures": {architectures}}}')
    assert run(["forecast", str(tmp_path / "config.json"), "--on", "T4", "--batch", "8"]) == 2
    assert capsys.readouterr().err.endswith("'architectures' should be a list of names of classes.\n")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [FORECAST, [*FORECAST, "--json"], ["--help"], ["devices"]], ids=" ".join)
def test_a_full_device_is_told_and_no_traceback(arguments):
    with FULL.open("w") as full:
        done = subprocess.run([sys.executable, "-m", "traincast", *arguments], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"Error: The answer cannot be written: No space left on device.\n"
