"""The questions of the course that this project starts from, each with commands that answer it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from traincast.errors import InputError, close_names
from traincast.report.parsing import parse_toml
from traincast.report.small_files import shipped_rows

_FOLDER = "course"
_QUESTIONS = "questions.toml"
_FITS = "optimus_fits.csv"
_LOGS = "{logs}"  # in a command: all logs
_LOG_FOLDER = "logs"
_SHAPES = "shapes"  # images in the layout of the Visual Decathlon
_N_LOGGED, _N_EPOCHS, _STEPS_PER_EPOCH = 40, 350, 391
_NOISE_LOG_SD = 0.03
_OWN_RUNS = 50  # layers of the model that is predicted: it is no sibling


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseQuestion:
    """A question of a report. `commands` are words after `traincast`; `needs` is an extra, or nothing."""

    name: str
    part: str
    title: str
    commands: tuple[str, ...]
    needs: str = ""
    wrong: str = ""  # what the reports got wrong
    easy: str = ""  # what is easily got wrong
    answers: tuple[str, ...] = ()  # to what it asks in words, by the numbers of experiments

    @property
    def remark(self) -> str:
        return f"What the reports got wrong: {self.wrong}" if self.wrong else f"Easily got wrong: {self.easy}"


def course_questions() -> tuple[CourseQuestion, ...]:
    """In the order of the reports."""
    text = resources.files("traincast").joinpath("data", _FOLDER, _QUESTIONS).read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = parse_toml(text)["question"]
    lists = ("commands", "answers")
    return tuple(CourseQuestion(**{**row, **{name: tuple(row.get(name, ())) for name in lists}}) for row in rows)


def course_question(name: str) -> CourseQuestion:
    known = {one.name: one for one in course_questions()}
    if name not in known:
        raise InputError(f"The course has no question '{name}'.{close_names(name, known)} It has: {', '.join(known)}.")
    return known[name]


def write_course_files(folder: Path) -> list[Path]:
    """The files that the commands read, into a folder; one that is there is left as it is: it may be the reader's."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in resources.files("traincast").joinpath("data", _FOLDER).iterdir():
        if source.name.endswith(".csv") and not (folder / source.name).exists():
            (folder / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(folder / source.name)
    shapes = folder / _SHAPES
    if not shapes.exists():
        from traincast.recipes.data.shapes import write_shapes

        written.append(write_shapes(shapes))
    for name, text in _logs():
        path = folder / _LOG_FOLDER / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def words_of(command: str, folder: Path) -> list[str]:
    """A command as its words; all logs stand where it says so."""
    import shlex

    words = []
    for word in shlex.split(command):
        logs = sorted((folder / _LOG_FOLDER).glob("*.csv")) if word == _LOGS else []
        words += [str(path.relative_to(folder)) for path in logs] or [word]
    return words


def shown_command(command: str) -> str:
    """As somebody would type it."""
    return f"traincast {command.replace(_LOGS, f'{_LOG_FOLDER}/*.csv')}"


def _logs() -> Iterator[tuple[str, str]]:
    """The curves of the published fits with a little noise: the logs themselves were never published."""
    import numpy as np

    for number, row in enumerate(shipped_rows(f"{_FOLDER}/{_FITS}")):
        if int(row["depth"]) == _OWN_RUNS:
            continue
        steps = np.arange(1, _N_LOGGED + 1) * math.floor(_STEPS_PER_EPOCH * _N_EPOCHS / _N_LOGGED)
        b0, b1, b2 = (float(row[name]) for name in ("b0", "b1", "b2"))
        noise = np.exp(np.random.default_rng(number).normal(0, _NOISE_LOG_SD, len(steps)))
        losses = (1 / (b0 * steps + b1) + b2) * noise
        lines = (f"{step},{loss:.6g}\n" for step, loss in zip(steps.tolist(), losses.tolist(), strict=True))
        yield f"{row['model']}_{row['hardware']}_train.csv", "step,loss\n" + "".join(lines)
