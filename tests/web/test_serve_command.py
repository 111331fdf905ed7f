"""`traincast serve`: one line that says where, and one sentence where it cannot."""

import re
import signal
import socket
import subprocess
import sys

import httpx

from traincast.__main__ import run


def test_it_says_where_it_is_answers_there_and_ends_on_ctrl_c():
    command = [sys.executable, "-u", "-m", "traincast", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        found = re.fullmatch(r"traincast is at (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", line)
        assert found is not None, line
        reply = httpx.get(found[1], timeout=20)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert "what will this training run take?" in reply.text
    assert errors == ""


def test_a_port_that_is_taken_is_one_sentence(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"Error: Cannot listen on 127.0.0.1, port {port}: ")
    assert "\n" not in error.strip()


def test_an_address_that_is_none_is_one_sentence(capsys):
    assert run(["serve", "--host", ""]) == 2
    assert capsys.readouterr().err.startswith("Error: --host cannot be empty: ")
    assert run(["serve", "--host", "no such host"]) == 2
    assert capsys.readouterr().err.startswith("Error: Cannot listen on no such host, port 8000: ")
