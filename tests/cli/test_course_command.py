"""`traincast course`: the questions of the course, one command each, and the page that leads through them."""

import csv
import importlib.util
from pathlib import Path

import pytest

from traincast.__main__ import run
from traincast.api.course import course_questions, words_of, write_course_files

DOCS = Path(__file__).parents[2] / "docs"
WITHOUT_TORCH = [one.name for one in course_questions() if not one.needs]


def generator():
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_lists_the_questions_in_the_order_of_the_reports(capsys):
    assert run(["course"]) == 0
    out = capsys.readouterr().out
    names = [one.name for one in course_questions()]
    assert [line.split()[0] for line in out.splitlines() if line.split("  ")[0] in names] == names
    parts = [one.part[0] for one in course_questions()]
    assert parts == sorted(parts)
    assert set(parts) == set("ACDE")  # B is with A4: it is the report on that question


def test_one_of_them_is_run_and_written_as_a_page(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(["course", "counts"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("$ traincast ") == 3
    assert "Bytes are not parameters." in printed.out
    page = (tmp_path / "course" / "counts.html").read_text()
    for words in ("Numbers kept from step to step", "How many convolutions", "22,347,986"):
        assert words in page
    assert (tmp_path / "course" / "dataparallel_epochs.csv").exists()


def test_a_file_of_the_reader_stays(tmp_path):
    (tmp_path / "k80_runs.csv").write_text("gpus,samples_per_s\n1,31\n")
    write_course_files(tmp_path)
    assert "1,31" in (tmp_path / "k80_runs.csv").read_text()


def test_the_logs_are_those_of_fifteen_runs_without_the_model_that_is_predicted(tmp_path):
    write_course_files(tmp_path)
    logs = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert len(logs) == 15
    assert not any("resnet50" in name for name in logs)
    assert len(words_of("converge {logs} --fits", tmp_path)) == 17
    with (tmp_path / "logs" / logs[0]).open() as log:
        assert len(list(csv.DictReader(log))) == 40


@pytest.mark.parametrize("name", [one.name for one in course_questions()])
def test_every_command_exists(name):
    """Those that train are not run here: their flags are looked up."""
    from typer.main import get_command

    from traincast.cli.app import make_app

    (question,) = [one for one in course_questions() if one.name == name]
    for line in question.commands:
        words = words_of(line, Path())
        command = get_command(make_app()).commands[words[0]]
        if words[0] == "train":
            command = command.commands[words[1]]
        flags = {flag for option in command.params for flag in option.opts}
        assert {word for word in words if word.startswith("--")} <= flags


def test_an_unknown_question_is_one_sentence(capsys):
    assert run(["course", "paloe"]) == 2
    assert "The course has no question 'paloe'. Close names: paleo." in capsys.readouterr().err


def test_the_page_shows_what_the_commands_print(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    fresh = generator().course_page()
    assert (DOCS / "course.md").read_text(encoding="utf-8") == fresh, "stale: run 'python docs/generate.py'"
