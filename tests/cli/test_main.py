"""The command itself: help, version, exit codes, and no tracebacks for users' mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import traincast
from traincast.__main__ import run
from traincast.cli import app as app_module
from traincast.errors import InputError


@pytest.fixture
def failing(monkeypatch):
    """An app with one command that raises what it is told to."""

    def failing(error):
        app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

        @app.command()
        def fail() -> None:
            raise error

        monkeypatch.setattr(app_module, "app_for", lambda arguments: app)

    return failing


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"traincast {traincast.__version__}\n"


def test_help_names_the_commands(capsys):
    assert run(["--help"]) == 0
    assert "devices Which devices are known?" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("arguments", [["nope"], ["devices", "--nope"], ["devices", "--min-memory", "much"]])
def test_a_usage_error_is_exit_code_2(capsys, arguments):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error: " in captured.err
    assert "Traceback" not in captured.err


def test_our_errors_become_one_line(capsys, failing):
    failing(InputError("Batch size 0\nis not positive."))
    assert run([]) == 2
    assert capsys.readouterr().err == "Error: Batch size 0 is not positive.\n"


def test_an_interrupt_is_130(failing):
    failing(KeyboardInterrupt())
    assert run([]) == 130


def test_bugs_keep_their_traceback(failing):
    failing(ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        run([])


@pytest.mark.parametrize("arguments", [["devices", "t4"], ["devices", "--json"]])
def test_a_closed_pipe_is_quiet(arguments):
    command = f"{sys.executable} -m traincast {' '.join(arguments)} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_help_does_not_load_what_only_answers_need():
    code = (
        "import sys; from traincast.__main__ import run; run(['--help']);"
        "print([m for m in ('numpy', 'scipy', 'torch', 'plotly', 'rich.table') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["forecast", "mnist_cnn", "--on", "T4", "--batch", "8"], ["models", "--json"]])
def test_a_full_disk_under_the_answer_is_one_sentence(arguments):
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "traincast", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (2, "Error: The answer cannot be written: No space left on device.\n")


@pytest.mark.parametrize(
    ("line", "proposed"),
    [("traincast fore", "forecast"), ("traincast forecast --ba", "--batch"), ("traincast train scr", "scratch")],
)
def test_a_shell_completes_commands_and_options(line, proposed):
    words = len(line.split()) - 1
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(words), "_TRAINCAST_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "traincast"], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [proposed]


def test_a_mistake_in_the_line_itself_is_one_sentence_that_names_the_help(capsys):
    assert run(["forecast", "resnet50", "--bathc", "8"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Error: No such option: --bathc")
    assert told.endswith("Try 'traincast forecast --help'.\n")
    assert told.count("\n") == 1


LATE_BEFORE = [
    ["forecast", "--on", "8xH100", "--batch", "64"],
    ["forecast", "--on", "T4", "--batch", "64", "--accumulate", "3"],
    ["forecast", "--on", "8xT4", "--batch", "64", "--tensor-parallel", "3"],
    ["forecast", "--on", "T4", "--batch", "64", "--precision", "amp-bf16x"],
    ["forecast", "--on", "T4", "--batch", "64", "--compare", "nowhere.json"],
    ["scale", "--on", "T4", "--algorithm", "nope"],
    ["explain", "--on", "T4", "--batch", "64", "--measured", "nowhere.json"],
    ["plan", "--samples", "1000", "--interruptions-per-day", "3"],
    ["plan", "--samples", "1000", "--on", "3xT4"],
    ["memory", "--on", "H100"],
    ["layers", "--on", "8xT4"],
    ["measure", "--batch", "8", "--device", "tpu"],
]


@pytest.mark.parametrize("line", LATE_BEFORE, ids=" ".join)
def test_a_wrong_option_is_refused_before_the_model_is_captured(line, capsys, tmp_path):
    (tmp_path / "model.py").write_text("def make():\n    raise SystemExit('captured')\n")
    assert run([line[0], f"{tmp_path / 'model.py'}:make", *line[1:]]) == 2
    assert capsys.readouterr().err.startswith("Error: ")
