"""Processes that are started beside ours, and their end."""

import subprocess
import sys
import time

from traincast.child_process import end, kill_session, start_module

WITH_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def is_running(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_what_a_process_has_started_ends_with_it(tmp_path, monkeypatch):
    (tmp_path / "parent_of_one.py").write_text(WITH_A_CHILD)
    monkeypatch.chdir(tmp_path)
    process = start_module("parent_of_one", stdout=subprocess.PIPE)
    grandchild = int(process.stdout.readline())
    assert is_running(grandchild)
    end(process)
    assert process.returncode == -9
    while is_running(grandchild):  # the kernel takes its time, but it has been told
        time.sleep(0.01)


def test_a_process_that_reads_its_input_to_the_end_is_given_time_to_leave(tmp_path, monkeypatch):
    (tmp_path / "reads_all.py").write_text("import sys\nsys.stdin.read()\nsys.exit(5)\n")
    monkeypatch.chdir(tmp_path)
    process = start_module("reads_all")
    end(process, patience_s=60.0)
    assert process.returncode == 5


def test_a_process_in_our_session_dies_alone():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    kill_session(process)
    assert process.wait() == -9


def test_to_end_what_has_ended_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "over.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    process = start_module("over")
    process.wait()
    end(process)
    assert process.returncode == 3
