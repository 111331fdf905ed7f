"""A bar on stderr for what takes longer than a moment."""

import io
import sys

import pytest

from traincast.cli.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Called inside a test: pytest puts its own stderr in place between fixtures and tests."""

    def open_it():
        fake = Terminal()
        monkeypatch.setattr(sys, "stderr", fake)
        monkeypatch.setenv("TERM", "xterm")
        return fake

    return open_it


def test_what_takes_long_gets_a_bar_on_a_terminal(on_terminal):
    terminal = on_terminal()
    with ProgressBar("Measuring net") as bar:
        bar._start_s -= 10.0
        bar(1, 0)
        bar(2, 4)
    assert "Measuring net" in terminal.getvalue()


def test_what_is_quick_gets_none(on_terminal):
    terminal = on_terminal()
    with ProgressBar("Measuring net") as bar:
        bar(2, 4)
    assert terminal.getvalue() == ""


def test_where_nobody_looks_there_is_none(capsys):
    with ProgressBar("Measuring net") as bar:
        bar._start_s -= 10.0
        bar(2, 4)
    assert capsys.readouterr().err == ""
