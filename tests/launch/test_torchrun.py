"""Processes that torchrun really starts, and what becomes of them when something goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traincast.api.processes import measure_processes
from traincast.errors import InputError, MeasurementError, UnknownModelError
from traincast.launch.torchrun import FOLDER_VARIABLE, report_error, report_result, told_failure

MODEL = """
import os, pathlib, signal, torch

class Model(torch.nn.Module):
    def __init__(self, action):
        super().__init__()
        self.inner, self.action, self.n = torch.nn.Linear(32, 32), action, 0

    def forward(self, x):
        self.n += 1
        pathlib.Path(__file__).with_name(f"pid-{os.environ['RANK']}").write_text(str(os.getpid()))
        if self.n == 3 and os.environ["RANK"] == "1" and self.action is not None:
            self.action()
        return self.inner(x)

def bad_batch():
    raise ValueError("the third batch is bad")

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def forever():
    signal.pause()

def made(action):
    return Model(action), lambda n: torch.ones(n, 32)

def good(): return made(None)
def raises(): return made(bad_batch)
def killed(): return made(kill)
def hangs(): return made(forever)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def alive(folder: Path) -> list[int]:
    """Which of the processes that ran a model are still there, after a moment to end."""
    pids = [int(path.read_text()) for path in folder.glob("pid-*")]
    assert pids, "no process came as far as its model"
    until_s = time.monotonic() + 15
    while (left := [pid for pid in pids if _runs(pid)]) and time.monotonic() < until_s:
        time.sleep(0.05)
    return left


def _runs(pid: int) -> bool:
    """A process that has ended and that nobody has asked about yet (a zombie) does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_processes_train_a_model_of_a_file(folder):
    told = []
    found = measure_processes(
        f"{folder}/model.py:good",
        8,
        n_processes=2,
        optimizer="adam",
        n_steps=6,
        on_progress=lambda n_done, n_to_do: told.append((n_done, n_to_do)),
    )
    assert told[-1] == (6, 6)  # rounds
    assert found.model == "model:good"
    assert (found.n_processes, found.batch_size, found.backend) == (2, 8, "gloo")
    assert found.gradient_bytes == 4 * (32 * 32 + 32)
    assert found.n_threads == max(1, len(os.sched_getaffinity(0)) // 2)
    assert found.environment.omp_num_threads == str(found.n_threads)
    assert found.step.n == 6
    assert alive(folder) == []


def test_a_module_that_fails_in_one_process_is_told_in_one_sentence_and_leaves_nobody_behind(folder):
    with pytest.raises(MeasurementError) as told:
        measure_processes(f"{folder}/model.py:raises", 8, n_processes=2, optimizer="none")
    assert str(told.value) == ("Process 1 of 2: Step 3 of model:raises failed (ValueError: the third batch is bad).")
    assert alive(folder) == []


def test_a_process_that_is_killed_is_told_in_one_sentence_and_leaves_nobody_behind(folder):
    with pytest.raises(MeasurementError) as told:
        measure_processes(f"{folder}/model.py:killed", 8, n_processes=2, optimizer="none")
    assert str(told.value) == "Process 1 of 2 was killed (SIGKILL); the others were stopped."
    assert alive(folder) == []


def test_a_process_that_hangs_is_given_up_after_the_timeout(folder):
    with pytest.raises(MeasurementError, match="Process 0 of 2 lost another process, which gave no reason"):
        measure_processes(f"{folder}/model.py:hangs", 8, n_processes=2, optimizer="none", timeout_s=3)
    assert alive(folder) == []


def test_when_the_launcher_is_killed_its_processes_end_too(folder):
    call = f"measure_processes('{folder}/model.py:hangs', 8, n_processes=2, optimizer='none')"
    script = f"from traincast.api.processes import measure_processes; {call}"
    with subprocess.Popen([sys.executable, "-c", script]) as launcher:
        until_s = time.monotonic() + 60
        while not (folder / "pid-1").is_file() and time.monotonic() < until_s:
            time.sleep(0.1)
        launcher.send_signal(signal.SIGKILL)
    assert alive(folder) == []


def test_what_cannot_be_shared_is_refused_before_anything_is_started():
    with pytest.raises(InputError, match="cannot be split equally"):
        measure_processes("mnist_cnn", 7, n_processes=2)


def reported(monkeypatch, folder, errors, log=""):
    """What is raised when the processes reported these errors, in this order, and torchrun said that."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    for rank, (error, is_consequence) in enumerate(errors):
        report_error(error, rank=rank, is_consequence=is_consequence)
    return told_failure(folder, log, 2)


def test_what_was_asked_wrongly_is_told_as_it_is_without_processes(monkeypatch, tmp_path):
    wrong = UnknownModelError("There is no model of that name.")
    told = reported(monkeypatch, tmp_path, [(wrong, False), (wrong, False)])
    assert isinstance(told, InputError)
    assert str(told) == "There is no model of that name."


def test_the_cause_is_told_and_not_what_it_led_to_even_if_that_came_first(monkeypatch, tmp_path):
    lost, cause = RuntimeError("gloo/transport: connection closed by peer"), KeyError("labels")
    told = reported(monkeypatch, tmp_path, [(lost, True), (cause, False)])
    assert str(told) == "Process 1 of 2: KeyError: 'labels'."


def test_a_torchrun_that_ends_for_reasons_of_its_own_is_quoted(tmp_path):
    told = told_failure(tmp_path, "usage: torchrun\n\nerror: no such option\n", 2)
    assert str(told) == "torchrun ended without a result: error: no such option."
    assert "it printed nothing" in str(told_failure(tmp_path, "", 2))


def test_a_worker_that_the_user_started_reports_to_nobody(monkeypatch, tmp_path):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    report_result({"step_s": 1.0})
    assert list(tmp_path.iterdir()) == []


def test_the_same_measurement_runs_under_the_users_own_torchrun_on_two_nodes(folder):
    """Two torchruns on one machine stand for two machines: they meet at a rendezvous, as two machines would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = folder / "result.json"
    script = folder / "run.py"
    script.write_text(
        "import json, os, pathlib\n"
        "from traincast.api.processes import measure_processes\n"
        f"found = measure_processes('{folder}/model.py:good', 8, optimizer='none', n_steps=6).to_dict()\n"
        f"if os.environ['RANK'] == '0': pathlib.Path('{result}').write_text(json.dumps(found))\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    command += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=test", str(script)]
    # A name that resolves to an address of this machine is what the other node would connect to.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*command[:-1], "--local-addr=127.0.0.1", command[-1]]
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(subprocess.Popen(command, env=environment)) for _ in range(2)]
        for node in nodes:
            stack.callback(node.kill)  # a node that lost the other one would wait for it
        assert [node.wait(timeout=90) for node in nodes] == [0, 0]
    found = json.loads(result.read_text())
    assert found["n_processes"] == 2
    assert found["step"]["n"] == 6
    assert alive(folder) == []


def test_a_script_that_joined_ends_with_no_thread_of_the_group_left():
    """One that is left aborts the process at times: what it drops needs an interpreter that is no longer there."""
    script = (
        "import atexit, weakref, torch, torch.distributed as dist\n"
        "atexit.register(lambda: print('left' if group() else 'gone'))  # the first that is registered runs last\n"
        "from traincast.measurement.processes.group import join\n"
        "join('cpu', timeout_s=60)\n"
        "group = weakref.ref(dist.group.WORLD)\n"
        "network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))\n"
        "network(torch.ones(1, 2)).sum().backward()\n"
        "network.itself = [network]\n"
        "del network\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    environment = {**os.environ, **place, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "gone\n"
