"""README's story of one run: model, plan, running job, bill. Five commands in one folder, one after the other."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from traincast.__main__ import run

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^## One run, five commands\n(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(
    r"^```console(?P<info>[^\n]*)\n\$ traincast (?P<line>.*?)\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL
)
SHORT = {"--epochs": "2", "--image-side": "8"}  # of the training: a minute is too long for a test


def story():
    text = SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))[1]
    for block in BLOCK.finditer(text.replace("\\\n", " ")):
        yield block["info"].strip(), shlex.split(block["line"]), block["output"]


def told(arguments, capsys):
    assert run(arguments) == 0
    return capsys.readouterr().out


def shortened(arguments):
    return [SHORT.get(before, word) for before, word in zip(["", *arguments], arguments, strict=False)]


def outline(text):
    """The words of each line that begins with one: headings and names of rows, without numbers."""
    lines = [re.sub(r"[^a-z ]+", " ", line.lower()).split() for line in text.splitlines()]
    return [words[0] for words in lines if words and len(words[0]) > 2]


def test_the_story_is_told_in_five_commands():
    assert [arguments[0] for _, arguments, _ in story()] == ["forecast", "plan", "train", "watch", "converge"]
    assert [info for info, _, _ in story()] == ["", "", "times-differ", "", ""]


def test_every_command_of_the_story_runs_and_shows_what_readme_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("sklearn")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    shutil.copytree(ROOT / "docs" / "story", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for info, arguments, shown in story():
        if info == "times-differ":
            out = told(shortened(arguments), capsys)
            assert set(outline(shown)) - set(outline(out)) == set()
            assert Path("run/log.csv").read_text().startswith(Path("running.csv").read_text().partition("\n")[0])
        else:
            assert told(arguments, capsys).rstrip() == shown.rstrip()


def test_the_log_that_is_watched_is_the_begin_of_the_one_that_is_paid_for():
    folder = ROOT / "docs" / "story"
    running, finished = ((folder / name).read_text(encoding="utf-8") for name in ("running.csv", "finished.csv"))
    assert finished.startswith(running)
    assert 0.2 < len(running) / len(finished) < 0.5
