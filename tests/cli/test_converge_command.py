"""`traincast converge`: where runs end, from their logs."""

import json

import numpy as np
import pytest

from traincast.__main__ import run

STEPS = np.arange(100, 4001, 100)
LOSSES = 2.0 + 8.0 * STEPS**-0.4


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "metrics.csv"
    rows = [f"{step},{loss:.5f},{0.5 * step}" for step, loss in zip(STEPS, LOSSES, strict=True)]
    path.write_text("\n".join(["step,train_loss,seconds", *rows]) + "\n")
    return path


def answer(capsys, *arguments):
    assert run(["converge", *map(str, arguments), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_the_end_the_target_the_time_and_the_bill_are_told(log, capsys):
    target = 2.0 + 8.0 * 8_000**-0.4
    found = answer(capsys, log, "--total-steps", 10_000, "--target", target, "--price", 36, "--lr", "constant")
    assert found["end"]["p50"] == pytest.approx(2.0 + 8.0 * 10_000**-0.4, rel=0.01)
    assert found["arrival"]["steps"]["p50"] == pytest.approx(8_000, rel=0.15)
    assert found["left_s"]["p50"] == pytest.approx(0.5 * 6_000, rel=0.01)
    assert found["left_usd"]["p50"] == pytest.approx(0.01 * 0.5 * 6_000, rel=0.01)  # 36 USD an hour are a cent a second
    assert found["arrival"]["from_now_s"]["p50"] == pytest.approx(0.5 * 4_000, rel=0.3)


def test_a_target_out_of_reach_is_told_with_its_chance(log, capsys):
    assert run(["converge", str(log), "--target", "1.0", "--total-steps", "6000"]) == 0
    text = capsys.readouterr().out
    assert "never" in text
    assert "will probably not reach 1 in this run: the chance is 0" in text


def test_optimus_law_may_be_asked_for(log, capsys):
    assert answer(capsys, log, "--family", "optimus", "--total-steps", 10_000)["end"]["p50"] > 2.0


def test_several_logs_are_answered_together(log, tmp_path, capsys):
    other = tmp_path / "other.csv"
    other.write_text(log.read_text())
    page = tmp_path / "page.html"
    assert run(["converge", str(log), str(other), "--html", str(page)]) == 0
    assert "Where 2 runs will end" in capsys.readouterr().out
    assert "forecast, p10 to p90" in page.read_text()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", (), "empty"),
        ("step,loss\n1,2.0\n", (), "at least 4 finite points"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--lr", "wavy"), "is no learning rate"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--lr", "cosine"), "needs the length of the run"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--metric", "accuracy"), "has no series 'accuracy'"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--total-steps", "-5"), "above 0"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--family", "optimos"), "no family 'optimos'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(text, options, words, tmp_path, capsys):
    path = tmp_path / "log.csv"
    path.write_text(text)
    assert run(["converge", str(path), *options]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_a_missing_file_is_named(capsys):
    assert run(["converge", "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


def test_a_whole_run_has_a_bill_beside_what_was_forecast(log, tmp_path, capsys):
    page = tmp_path / "bill.html"
    options = ["--total-steps", "4000", "--price", "36", "--step-s", "0.4"]
    assert run(["converge", str(log), *options, "--html", str(page)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("How metrics.csv ended")
    (cost,) = [line.split() for line in text.splitlines() if line.startswith("cost")]
    assert cost == ["cost", "$16.00", "$20.00", "0.80"]  # 4,000 steps of 0.4 and 0.5 s at a cent a second
    assert "time until then" not in text
    assert "Time of metrics.csv: predicted and measured" in page.read_text()


def test_what_a_run_has_taken_so_far_is_told_without_a_forecast(log, capsys):
    assert run(["converge", str(log), "--total-steps", "10000", "--price", "36"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Where metrics.csv will end")
    assert "So far" in text
    assert "4,000 steps  33.3 min" in text
    assert "predicted" not in text


def test_a_log_without_a_clock_has_no_bill(log, capsys):
    log.write_text("\n".join(line.rpartition(",")[0] for line in log.read_text().splitlines()))
    found = answer(capsys, log, "--total-steps", 10_000, "--price", 36)
    assert (found["spent_s"], found["spent_usd"]) == (None, None)


def test_odd_columns_and_formats_may_be_told(tmp_path, capsys):
    file = tmp_path / "odd.csv"
    rows = "\n".join(f"{step},{loss:.5f}" for step, loss in zip(STEPS, LOSSES, strict=True))
    file.write_text(f"tick,l2\n{rows}\n")
    told = ("--format", "csv", "--column", "step=tick", "--column", "val_loss=l2")
    found = answer(capsys, file, *told, "--total-steps", 10_000)
    assert (found["step"], found["metric"], found["split"]) == (4000.0, "loss", "validation")
    assert run(["watch", str(file), *told, "--once"]) == 0
    assert run(["converge", str(file), "--column", "step"]) == 2
    assert "--column 'step' should be a meaning and a column's name" in capsys.readouterr().err


def test_a_target_in_percent_does_not_stop_a_good_run(tmp_path, capsys):
    """The log is in percent, and so is the target."""
    file = tmp_path / "log.csv"
    rows = "\n".join(f"{step},{95 - 60 * (step / 100) ** -0.7:.3f}" for step in STEPS)
    file.write_text(f"step,val_acc\n{rows}\n")
    asked = ("--metric", "accuracy", "--target", "92", "--total-steps", "10000")
    assert run(["watch", str(file), "--once", *asked, "--stop-if", "p(target) < 0.05"]) == 0
    capsys.readouterr()
    found = answer(capsys, file, *asked)
    assert found["arrival"]["target"] == 0.92
    assert run(["converge", str(file), "--metric", "accuracy", "--target", "920"]) == 2
    assert "a target of 920 is not in between" in capsys.readouterr().err
