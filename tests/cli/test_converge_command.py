"""`traincast converge`: where runs end, from their logs."""

import json

import numpy as np
import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.views.converge import document_of

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
        ("step,loss\n1,2.0\n", (), "has 1 finite point of 'loss', and a curve needs at least 4"),
        ("step,loss\n1,2\n2,2\n3,nan\n4,nan\n", (), "is not finite since step 3: it diverged before"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--lr", "wavy"), "is not a learning rate"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--lr", "cosine"), "needs the length of the run"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--metric", "accuracy"), "has no series 'accuracy'"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--total-steps", "-5"), "above 0"),
        ("step,loss\n1,2\n2,2\n3,1\n4,1\n", ("--target", "92%"), "--target '92%' is not a number: write 0.92"),
        (
            "step,loss\n1,2\n2,2\n3,1\n4,1\n",
            ("--family", "optimos"),
            "family 'optimos' is not known. Close names: optimus",
        ),
        (
            "step,loss\n1,2\n2,2\n3,1\n4,1\n",
            ("--total-steps", "500", "--epochs", "9", "--steps-per-epoch", "100"),
            "A total of 500 steps and 9 epochs of 100 steps (900 steps in all) contradict each other",
        ),
        (
            "epoch,loss\n1,2\n2,2\n3,1\n4,1\n",
            ("--total-steps", "9", "--epochs", "5"),
            "of 9 epochs and 5 epochs contradict",
        ),
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
    assert "--column 'step' is not a meaning and a column's name: write step=it" in capsys.readouterr().err


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
    assert "a target of 920 is outside that range" in capsys.readouterr().err


def test_the_bill_counts_the_steps_before_the_first_row_and_says_so(tmp_path, capsys):
    """Rows every 200 of 1,000 steps of 2 s, by date: a fifth of the run has no row."""
    file = tmp_path / "dated.csv"
    rows = "".join(f"{step},{1 + 40 / step:.4f},{1.7e9 + 2 * step}\n" for step in range(200, 1001, 200))
    file.write_text(f"step,loss,timestamp\n{rows}")
    asked = (file, "--total-steps", 1000, "--price", 36)
    found = answer(capsys, *asked)
    assert (found["spent_s"], found["spent_usd"]) == pytest.approx((2000.0, 20.0))
    assert run(["converge", *map(str, asked)]) == 0
    text = capsys.readouterr().out
    assert "1,000 steps, 20.0 % of it estimated  33.3 min" in text
    assert "$20.00" in text
    assert "counts the 200 steps up to there as 6.67 min" in text


def test_a_run_that_has_diverged_says_so_in_table_page_and_json(log, tmp_path, capsys):
    page = tmp_path / "page.html"
    with log.open("a") as out:
        out.writelines(f"{step},nan,{0.5 * step}\n" for step in range(4100, 5001, 100))
    asked = ["--total-steps", "10000", "--target", "2.1", "--price", "36"]
    found = answer(capsys, log, *asked)
    assert (found["step"], found["diverged_step"], found["end"]) == (5000, 4100, None)
    assert (found["arrival"]["probability"], found["spent_usd"]) == (0.0, 25.0)
    assert run(["converge", str(log), *asked, "--html", str(page)]) == 0
    for text in (capsys.readouterr().out, page.read_text()):
        assert "metrics.csv has diverged" in text
        assert "It will not reach 2.1: it has diverged." in text
        assert "$25.00" in text


def test_a_length_below_that_of_the_log_is_the_same_everywhere(log, capsys):
    asked = ["--total-steps", "1000", "--target", "2.5"]
    found = answer(capsys, log, *asked)
    assert (found["total_steps"], found["end"]["p50"], found["last_value"]) == (4000, 2.28991, 2.28991)
    assert found["arrival"]["probability"] == 1.0
    assert run(["converge", str(log), *asked]) == 0
    text = capsys.readouterr().out
    assert "at the end             2.29 " in text
    assert "probability of 2.5     100.0 %" in text
    assert "never" not in text
    assert "The log goes on to step 4,000, beyond the length of 1,000 steps" in text


def test_lengths_that_say_the_same_may_both_be_given(log, capsys):
    asked = ("--total-steps", 9000, "--epochs", 9, "--steps-per-epoch", 1001)  # of which the last batch is left out
    assert answer(capsys, log, *asked)["total_steps"] == 9000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "There is a price but no cost: its log has no clock, and no time per step is given."),
        (("--step-s", 1), "There is no cost until the end: the length of the run is not known."),
        (("--step-s", 1, "--total-steps", 9000), "There is no cost so far: its log has no clock."),
    ],
)
def test_a_price_without_a_bill_is_explained(log, capsys, options, words):
    log.write_text("\n".join(line.rpartition(",")[0] for line in log.read_text().splitlines()))
    assert words in answer(capsys, log, "--price", 36, *options)["remarks"]


def test_logs_of_a_relation_need_an_accuracy_to_tell(log, tmp_path, capsys):
    other = tmp_path / "other.csv"
    other.write_text(log.read_text())
    assert run(["converge", str(log), "--relation-from", str(other)]) == 2
    assert "no metric is requested: use the metric accuracy" in capsys.readouterr().err


def test_evaluations_are_drawn_beside_the_accuracy_that_is_told_from_the_loss(tmp_path):
    path = tmp_path / "metrics.csv"
    rows = [
        f"{step},{loss:.5f},{1 - loss / 9 if step % 800 == 0 else ''}" for step, loss in zip(STEPS, LOSSES, strict=True)
    ]
    path.write_text("\n".join(["step,train_loss,val_acc", *rows]) + "\n")
    chart = document_of([tc.converge(path, metric="accuracy", total_steps=8_000)]).charts[0]
    evaluated = next(one for one in chart.series if one.name == "logged")
    assert list(evaluated.x) == [800, 1600, 2400, 3200, 4000]
    assert evaluated.y[-1] == pytest.approx(1 - LOSSES[-1] / 9)


def test_what_rises_is_read_on_a_plain_axis_and_what_has_fallen_far_on_a_logarithmic_one(tmp_path):
    steps = range(10, 301, 10)
    for name, values in {
        "val_acc": [0.95 - 0.9 * 0.97**step for step in steps],
        "train_loss": [0.01 + 3 * 0.97**step for step in steps],
    }.items():
        path = tmp_path / f"{name}.csv"
        rows = [f"{step},{value:.5f}" for step, value in zip(steps, values, strict=True)]
        path.write_text("\n".join([f"step,{name}", *rows]) + "\n")
        metric = "accuracy" if name == "val_acc" else "loss"
        found = tc.converge(path, metric=metric, total_steps=600)
        assert document_of([found]).charts[0].log_y == (metric == "loss")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "the same data, batch and settings"),
        (("--family", "optimus"), "follows Optimus' law"),
        (("--like", "whole.csv"), "like the runs it is compared with"),
    ],
)
def test_what_the_rest_of_a_run_is_taken_from_is_said(log, tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    rows = [f"{step},{2.1 + 8.0 * step**-0.4:.5f}" for step in range(100, 10_001, 100)]
    (tmp_path / "whole.csv").write_text("\n".join(["step,train_loss", *rows]) + "\n")
    assert run(["converge", str(log), "--total-steps", "10000", *options]) == 0
    assert words in capsys.readouterr().out
    assert run(["converge", str(log), "--total-steps", "4000"]) == 0
    assert "Assumed" not in capsys.readouterr().out  # it is over
