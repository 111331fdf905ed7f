"""`traincast course`: the questions that this project starts from, one command each."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincast.api.course import CourseQuestion
    from traincast.report.document import Document


def _own(name: o.CourseName = "", *, out: o.CourseFolder = "course") -> None:
    """Options of the command."""


@command(own=_own)
def course(line: CommandLine) -> None:
    """What did the course ask, and what is the answer? A tour: each question is a few commands with a report.

    Examples: traincast course; traincast course paleo; traincast course optimus --out answers
    """
    from traincast.api.course import course_question, course_questions
    from traincast.cli.show import show, write_files

    name, folder = line.own["name"], Path(line.own["out"])
    if not name:
        line.show(_listed(course_questions()))
        return
    question = course_question(name)
    silenced = contextlib.redirect_stdout(io.StringIO()) if line.as_json else contextlib.nullcontext()
    with silenced:
        joined = _joined(question, _run(question, folder))
        for text in (*question.answers, question.remark):
            typer.echo(text)
    page = line.html or folder / f"{name}.html"
    if line.as_json:
        show(joined, as_json=True, html=page, png=line.png)
    else:
        write_files(joined, html=page, png=line.png)


def _listed(questions: Sequence[CourseQuestion]) -> Document:
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    columns = (
        Column(key="name", header="name", show="name"),
        Column(key="part", header="part", show="name"),
        Column(key="needs", header="needs", show="name"),
        Column(key="title", header="question"),
    )
    return Document(
        title="The course, question by question",
        tables=(
            Table(
                title="Questions",
                columns=columns,
                rows=tuple((one.name, one.part, one.needs or None, one.title) for one in questions),
            ),
        ),
        notes=(
            "traincast course NAME runs one in the folder course/ and writes its report there.",
            "A: assignment; B: report on Optimus; C: report on DataParallel; D: lab; E: practicum. docs/course.md has "
            "the answers.",
        ),
    )


def _run(question: CourseQuestion, folder: Path) -> list[Document]:
    """Runs the commands in the folder and gives what they showed."""
    from traincast.api.course import shown_command, words_of, write_course_files
    from traincast.cli.app import app_for
    from traincast.cli.show import SHOWN

    write_course_files(folder)
    shown: list[Document] = []
    token = SHOWN.set(shown)
    try:
        with contextlib.chdir(folder):
            for asked in question.commands:
                typer.echo(f"$ {shown_command(asked)}")
                words = words_of(asked, Path())
                app_for(words)(args=words, prog_name="traincast", standalone_mode=False)
                typer.echo("")
    finally:
        SHOWN.reset(token)
    return shown


def _joined(question: CourseQuestion, shown: Sequence[Document]) -> Document:
    """One page of all answers; the tables of each say which it is of."""
    from traincast.api.course import shown_command
    from traincast.report.document import Document

    verdicts = [f"{one.title}: {one.verdict}" if len(shown) > 1 else one.verdict for one in shown if one.verdict]
    tables = [
        replace(table, title=f"{one.title}: {table.title}" if table.title else one.title)
        for one in shown
        for table in one.tables
    ]
    return Document(
        title=question.title,
        subtitle=f"Course, part {question.part}: {'; '.join(shown_command(one) for one in question.commands)}",
        verdict=" ".join(verdicts),
        tables=tuple(tables),
        charts=tuple(chart for one in shown for chart in one.charts),
        warnings=tuple(dict.fromkeys(text for one in shown for text in one.warnings)),
        notes=(*question.answers, question.remark, *dict.fromkeys(text for one in shown for text in one.notes)),
    )
