"""`traincast bench`: thousands of rows unattended, resumed, killed, interrupted."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from traincast.__main__ import run
from traincast.records.store import Store


def bench(*arguments):
    return run(["bench", *map(str, arguments)])


@pytest.fixture
def quick(monkeypatch):
    """Values without timing; the command is what is tested here."""
    import traincast.microbenchmarks.layer_bench as layers
    import traincast.microbenchmarks.op_bench as ops
    from traincast.errors import InputError

    def run_layer(settings):
        if settings["layer"] == "pool":
            raise InputError("No pool today.")
        return {"step_s": 0.5}

    monkeypatch.setattr(layers, "run_layer", run_layer)
    monkeypatch.setattr(ops, "run_op", lambda settings: {"median_s": 0.5})


def test_it_says_how_many_were_done_now_and_before_and_failed(tmp_path, capsys, quick):
    assert bench("layers", "--rows", 8, "--store", tmp_path / "a.db") == 0
    assert "8 of 8 layers are in" in capsys.readouterr().out
    assert bench("layers", "--rows", 12, "--store", tmp_path / "a.db", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["n_tasks"], answer["n_before"], answer["n_now"], answer["n_failed"]) == (12, 8, 4, 3)
    assert answer["campaign"] == "layers"


def test_failed_rows_are_done_again_when_asked(tmp_path, capsys, quick):
    bench("layers", "--rows", 4, "--store", tmp_path / "a.db")
    assert "--retry-failed repeats them" in capsys.readouterr().out
    bench("layers", "--rows", 4, "--store", tmp_path / "a.db", "--retry-failed", "--json")
    assert json.loads(capsys.readouterr().out)["n_now"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "gpu", "--on-ray", "local"], "not on 'gpu'"),
        (["--device", "cpu:x"], "not on 'cpu:x'"),
        (["--device", "cuda:1", "--on-ray", "local"], "On Ray every task sees one GPU"),
        (["--device", "cuda", "--on-ray", "local", "--cpus-per-task", "2"], "apply to the CPUs of a Ray cluster only"),
        (["--cpus-per-task", "2"], "apply to the CPUs of a Ray cluster only"),
    ],
)
def test_what_no_task_could_run_on_is_told_before_a_row_is_stored(tmp_path, capsys, arguments, words):
    assert bench("ops", "--rows", 2, "--store", tmp_path / "a.db", *arguments) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_seeds_and_campaigns_share_a_store(tmp_path, quick):
    path = tmp_path / "a.db"
    bench("ops", "--rows", 3, "--store", path)
    bench("ops", "--rows", 3, "--store", path, "--seed", 1)
    bench("ops", "--rows", 3, "--store", path, "--campaign", "again")
    with Store(path, create=False) as store:
        assert {group.campaign: group.n for group in store.groups("op")} == {"ops": 6, "again": 3}


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    import traincast.microbenchmarks.op_bench as ops

    done = []

    def interrupted(settings):
        done.append(settings)
        if len(done) == 3:
            raise KeyboardInterrupt
        return {"median_s": 0.5}

    monkeypatch.setattr(ops, "run_op", interrupted)
    assert bench("ops", "--rows", 5, "--store", tmp_path / "a.db") == 130
    output = capsys.readouterr()
    assert "2 of 5 ops are in" in output.out
    assert "the same command again does the rest" in output.err


def test_bad_input_is_one_sentence(tmp_path, capsys):
    for arguments, said in (
        (["ops", "--store", tmp_path], "is a folder"),
        (["ops", "--store", tmp_path / "a.db", "--rows", 0], "--rows cannot be 0: give a whole number of at least 1"),
        (
            ["ops", "--store", tmp_path / "a.db", "--rows", 10**11],
            "at most 1,000,000 rows (these take weeks), not 100,000,000,000",
        ),
        (["ops", "--store", tmp_path / "a.db", "--device", "tpu"], "not on 'tpu'"),
        (["ops", "--store", tmp_path / "a.db", "--cpus-per-task", 2], "of a Ray cluster only"),
    ):
        assert bench(*arguments) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("Error: ")
        assert said in error


def test_the_command_killed_in_the_middle_of_real_timings_resumes(tmp_path, capsys):
    path = tmp_path / "a.db"
    line = [sys.executable, "-m", "traincast", "bench", "ops", "--rows", "40", "--store", str(path)]
    child = subprocess.Popen(line, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline_s = time.monotonic() + 60
    while len(stored(path)) < 5:
        assert child.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = stored(path)
    n_rows = len(before) + 3
    assert bench("ops", "--rows", n_rows, "--store", path, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["n_before"], answer["n_now"]) == (len(before), 3)
    assert stored(path)[: len(before)] == before
    assert len({key for key, _ in stored(path)}) == n_rows


def stored(path):
    if not path.exists():
        return []
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute("SELECT key, value FROM records ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # not made yet
        return []
    finally:
        connection.close()
