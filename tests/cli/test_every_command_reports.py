"""Every command answers as text, JSON, a page and an image, and says before its work where these cannot go."""

import inspect
from pathlib import Path

import pytest
from typer.main import get_command

from traincast.__main__ import run
from traincast.cli.app import make_app
from traincast.cli.command import AsJson, HtmlFile, PngFile

# Commands that have no answer to show, and why.
NO_ANSWER = {"serve": "it is itself a page, with the same charts, until it is ended"}
OPTIONS = {"as_json": AsJson, "html": HtmlFile, "png": PngFile}


def commands(group=None, words=()):
    """(the words of a command, the command), those inside groups too."""
    for name, command in (group or get_command(make_app())).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands())
ANSWERING = sorted(COMMANDS.keys() - NO_ANSWER.keys())


@pytest.mark.parametrize("words", ANSWERING)
def test_every_command_has_json_a_page_and_an_image_by_the_same_definitions(words):
    parameters = inspect.signature(COMMANDS[words].callback.__wrapped__, eval_str=True).parameters
    for name, shared in OPTIONS.items():
        assert parameters[name].annotation is shared or parameters[name].annotation == shared


def test_only_commands_that_exist_are_excepted():
    assert COMMANDS.keys() >= NO_ANSWER.keys()


def needed(words):
    """Something for each argument and option that a command cannot do without."""
    values = {"what": "ops", "batch": "8", "n_samples": "8"}
    line = words.split()
    for parameter in COMMANDS[words].params:
        if parameter.required:
            value = values.get(parameter.name, f"no-such-{parameter.name}")
            line += [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]
    return line


@pytest.mark.parametrize("words", ANSWERING)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--html", "none/a.html"], "Cannot write 'none/a.html': the folder 'none' does not exist."),
        (["--png", "none/a.png"], "Cannot write 'none/a.png': the folder 'none' does not exist."),
        (["--png", "a.jpg"], "--png writes PNG images, so its file should end in .png, not 'a.jpg'."),
        (["--html", "a.png", "--png", "./a.png"], "--html and --png both name 'a.png': give each a file of its own."),
    ],
)
def test_a_file_that_cannot_be_is_told_before_any_work(words, asked, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([*needed(words), *asked]) == 2
    assert capsys.readouterr().err == f"Error: {said}\n"
    assert list(Path().iterdir()) == []
