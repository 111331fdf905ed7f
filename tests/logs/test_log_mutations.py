"""Small logs of every text format with numbers and rows out of place: an answer, or a sentence, and no warning."""

import contextlib
import json
import random
import re

import pytest

import traincast as tc
from traincast.curves.log_question import LogQuestion
from traincast.curves.status.status import status_of
from traincast.curves.status.status_line import line_of
from traincast.errors import TraincastError
from traincast.logs.follow import LogFollower

NUMBER = re.compile(r"-?\d+\.?\d*")
ODD = [
    "-1e308",
    "1e308",
    "-5",
    "0",
    "1e12",
    "1e18",
    "1e-308",
    "nan",
    "inf",
    "1e400",
    "x",
    "1,000",
    "12%",
    "99999:00:00",
]
ODD += ["", "9" * 400, "1" * 30]
ROWS = [(step, round(1 + 5 / step, 4)) for step in range(10, 310, 10)]
LOGS = {
    "csv": "step,epoch,loss,seconds\n" + "".join(f"{step},{step // 80},{loss},{step / 4}\n" for step, loss in ROWS),
    "lightning": "epoch,step,train_loss,val_loss\n"
    + "".join(f"{step // 100},{step - 1},{loss},\n{step // 100},{step - 1},,{loss}\n" for step, loss in ROWS),
    "jsonl": "".join(json.dumps({"step": step, "loss": loss, "time": 1.7e9 + step}) + "\n" for step, loss in ROWS),
    "trainer_state": json.dumps(
        {"max_steps": 1000, "log_history": [{"epoch": step / 99, "step": step, "loss": loss} for step, loss in ROWS]},
        indent=1,
    ),
    "text": "".join(f"Epoch: [{step // 100}][{step % 100}/100] Time 0.5 Loss {loss}\n" for step, loss in ROWS),
    "mlperf": "".join(
        f':::MLLOG {{"time_ms": {1.7e12 + step}, "key": "eval_accuracy", "value": {1 - 1 / step}, '
        f'"metadata": {{"epoch_num": {step // 10}}}}}\n'
        for step, _ in ROWS
    ),
}


def mutated(text, dice):
    """A few numbers, a column or the order of rows is not what it was."""
    lines = text.split("\n")
    for _ in range(dice.choice([1, 2, 5])):
        at, odd = dice.randrange(len(lines)), dice.choice(ODD)
        kind = dice.choice(["number", "column", "copy", "cut"])
        if kind == "copy":
            lines[at:at] = lines[dice.randrange(len(lines)) :][: dice.randrange(1, 9)]
        elif kind == "cut":
            del lines[at : at + dice.randrange(3)]
        else:
            place = dice.randrange(4)
            last = at + 1 if kind == "number" else len(lines)
            lines[at:last] = [with_number(line, place, odd) for line in lines[at:last]]
        lines = lines or [""]
    return "\n".join(lines)


def with_number(line, place, odd):
    found = list(NUMBER.finditer(line))
    return line if place >= len(found) else line[: found[place].start()] + odd + line[found[place].end() :]


@pytest.mark.parametrize("name", LOGS)
def test_a_mutated_log_has_an_answer_or_is_refused_in_words(tmp_path, name):
    dice = random.Random(name)
    for number in range(12):
        path = tmp_path / f"{number}.log"
        path.write_text(mutated(LOGS[name], dice))
        for read in (tc.read_log, lambda path: LogFollower(path).poll()):
            with contextlib.suppress(TraincastError):
                log = read(path)
                if log is not None:
                    line_of(status_of(log, LogQuestion(target=1.0, total_steps=1000)))
