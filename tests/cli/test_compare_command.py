"""`traincast compare`: wrong input is one sentence, and it comes before the minutes of work."""

import pytest

from traincast.__main__ import run
from traincast.kernels.refit import folders


@pytest.fixture
def data(tmp_path):
    for name in folders._DATA_FILES:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "data"


def refused(capsys, *arguments):
    assert run(["compare", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    return err


def test_a_folder_without_measurements(capsys, tmp_path):
    err = refused(capsys, "--data", tmp_path, "--traces", tmp_path)
    assert "lacks e2e/lambda.csv and 15 more files" in err
    assert "--data is the folder that holds ops/ and e2e/" in err


def test_no_traces(capsys, data, tmp_path):
    err = refused(capsys, "--data", data, "--traces", tmp_path / "nowhere")
    assert "holds no traces" in err
    assert "benchmarks/capture_models.py" in err


def test_unknown_sets_and_methods(capsys, data, tmp_path):
    assert "no set 'gem'" in refused(capsys, "--data", data, "--traces", tmp_path, "--set", "gem")
    assert "no method 'magic'" in refused(capsys, "--data", data, "--traces", tmp_path, "--method", "magic")


def test_a_folder_that_is_not_there_is_told_as_that(capsys):
    assert run(["compare", "--data", "nope"]) == 2
    assert "There is no folder 'nope': --data is the folder of public measurements" in capsys.readouterr().err
