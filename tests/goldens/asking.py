"""How goldens are asked: command lines in this process, far from whoever runs them; and where answers are stored."""

import contextlib
import io
import json
import os
import shlex
import tempfile
from pathlib import Path

from traincast.__main__ import run

FOLDER = Path(__file__).parent
_NOT_HELD = ("version", "n_threads")  # keys of the day and of the machine
_MOST_ROWS, _FIRST_ROWS = 8, 3


@contextlib.contextmanager
def neutral_ground():
    """Nothing of this machine, its user or terminal: no calibration, no width; files are those of `inputs`."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(FOLDER / "inputs"):
        os.environ["TRAINCAST_HOME"] = home
        os.environ.pop("COLUMNS", None)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def answer_of(question):
    """What `traincast QUESTION --json` prints, folded; with the exit code and stderr where that is not 0."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        exit_code = run([*shlex.split(question), "--json"])
    answer = folded(json.loads(out.getvalue())) if out.getvalue() else None
    if exit_code == 0:
        return answer
    return {"exit_code": exit_code, "stderr": err.getvalue().strip(), "answer": answer}


def answers_of(questions):
    with neutral_ground():
        return {question: answer_of(question) for question in questions}


def folded(value):
    """The same, with long lists of rows or numbers as their first entries, their length and the sum of each number.

    An explanation has hundreds of ops and would fill the file; the sums still move with each of them.
    """
    if isinstance(value, dict):
        return {key: folded(item) for key, item in value.items() if key not in _NOT_HELD}
    if not isinstance(value, list):
        return value
    rows = [folded(item) for item in value]
    if len(rows) <= _MOST_ROWS or all(isinstance(row, str) for row in rows):
        return rows
    return {"first": rows[:_FIRST_ROWS], "n": len(rows), "sums": _sums(rows)}


def _sums(rows):
    sums = {}
    for row in rows:
        for key, leaf in leaves(row).items():
            if is_number(leaf):
                name = key or "all"  # a row may be a number itself
                sums[name] = sums.get(name, 0) + leaf
    return sums


def leaves(value, key=""):
    """{"intervals.step_s[0]": 0.57, ...}: what an answer holds, by where. A list of sentences is one leaf."""
    if isinstance(value, dict):
        items = [(f"{key}.{name}" if key else name, item) for name, item in value.items()]
    elif isinstance(value, list) and not (value and all(isinstance(item, str) for item in value)):
        items = [(f"{key}[{place}]", item) for place, item in enumerate(value)]
    else:
        return {key: value}
    if not items:
        return {key: value}  # an empty list is not the same as none
    return {place: leaf for name, item in items for place, leaf in leaves(item, name).items()}


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_answers(name):
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_answers(name, answers):
    """One line an answer, so that a diff shows which of them moved."""
    lines = (f"{json.dumps(key)}: {json.dumps(answer, separators=(',', ':'))}" for key, answer in answers.items())
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
