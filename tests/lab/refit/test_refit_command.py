"""python -m lab.refit.kernels: what it says where its measurements or traces are not there."""

import sys

import pytest

from lab.refit.kernels import main
from traincast.kernels.refit import folders


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["refit", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr().err


def test_a_folder_without_measurements_is_named(monkeypatch, capsys, tmp_path):
    code, err = run(monkeypatch, capsys, "--data", tmp_path)
    assert code == 2
    assert f"'{tmp_path}' lacks e2e/lambda.csv and 15 more files" in err


def test_without_traces_it_says_how_to_make_them(monkeypatch, capsys, tmp_path):
    for name in folders._DATA_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    code, err = run(monkeypatch, capsys, "--data", tmp_path, "--traces", tmp_path / "none")
    assert code == 2
    assert "holds no traces: make them with 'python benchmarks/capture_models.py" in err.replace("\n", " ")
