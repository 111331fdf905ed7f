"""`traincast watch`, from the command line to the exit code."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traincast.__main__ import run

DOCS = Path(__file__).parents[2] / "docs"
HEADER = "step,epoch,train_loss,seconds\n"


def rows(first, last, *, every=10, step_s=0.5, late_s=0.0):
    return [
        f"{step},{step / 100:g},{1 + 4 * (step / 10) ** -0.5 + 0.01 * (step % 3):.4f},{step_s * step + late_s:.2f}\n"
        for step in range(first, last + 1, every)
    ]


def write(file, *parts):
    file.write_text(HEADER + "".join(line for part in parts for line in part))
    return file


def told(capsys, *arguments, code=0):
    assert run(["watch", *map(str, arguments)]) == code
    return capsys.readouterr()


@pytest.fixture
def log(tmp_path):
    return write(tmp_path / "run.csv", rows(10, 400))


@pytest.fixture
def grow(monkeypatch):
    """Does things to a log while it is watched: one whenever the watch sleeps."""

    def start(*deeds):
        left = list(deeds)

        def sleep(_):
            assert left, "the watch goes on although nothing more happens"
            left.pop(0)()

        monkeypatch.setattr("traincast.curves.status.watch_loop.time.sleep", sleep)

    return start


def append(file, lines):
    def act():
        with file.open("a") as out:
            out.writelines(lines)

    return act


def test_one_look_is_one_line(log, capsys):
    out = told(capsys, log, "--once", "--total-steps", 1000, "--target", 1.5, "--price", 36).out
    assert out.count("\n") == 1
    assert out.startswith("step 400 of 1,000 (40.0 %), epoch 4.0, loss 1.6")
    assert re.search(r", 5\.00 min \(4\.\d+ min to 5\.\d+ min\) left, \$3\.00 to go, p\(1\.5\) [\d.]+ %", out)


def test_json_is_one_object_a_line(log, capsys):
    (line,) = told(capsys, log, "--once", "--json", "--total-steps", 1000, "--target", 1.5).out.splitlines()
    data = json.loads(line)
    assert (data["step"], data["total_steps"], data["progress"], data["is_over"]) == (400.0, 1000.0, 0.4, False)
    assert data["left_s"]["p50"] == pytest.approx(300.0)
    assert 0 <= data["arrival"]["probability"] <= 1
    assert (data["warnings"], data["n_restarts"]) == ([], 0)


def test_what_it_saw_last_is_a_page(log, tmp_path, capsys):
    page = tmp_path / "page.html"
    seen = told(capsys, log, "--once", "--total-steps", 1000, "--step-s", 0.4, "--html", page)
    assert len(seen.out.splitlines()) == 1
    assert f"Wrote {page}" in seen.err
    assert f"Time of {log.name}: predicted and measured" in page.read_text()


def test_a_log_with_too_few_points_has_no_page(tmp_path, capsys):
    file = write(tmp_path / "short.csv", rows(10, 30))
    assert "too little yet" in told(capsys, file, "--once", "--html", tmp_path / "page.html", code=2).err


def test_ctrl_c_leaves_the_page_of_the_last_look(log, tmp_path, capsys, grow):
    def interrupt():
        raise KeyboardInterrupt

    page = tmp_path / "page.html"
    grow(append(log, rows(410, 500)), interrupt)
    seen = told(capsys, log, "--total-steps", 1000, "--html", page, code=130)
    assert f"Wrote {page}" in seen.err
    assert "50 points to step 500 of 1,000" in page.read_text()
    page.unlink()
    short = write(tmp_path / "short.csv", rows(10, 30))
    grow(interrupt)
    assert "too little yet" in told(capsys, short, "--total-steps", 1000, "--html", page, code=130).err
    assert not page.exists()


def test_a_rule_that_holds_is_told_by_the_exit_code_though_there_is_no_page_yet(tmp_path, capsys):
    file, page = write(tmp_path / "short.csv", rows(10, 30)), tmp_path / "page.html"
    seen = told(capsys, file, "--once", "--total-steps", 40, "--stop-if", "loss > 1", "--html", page, code=3)
    assert "too little yet" in seen.err


def test_it_ends_by_itself_when_the_run_is_over(log, capsys):
    assert told(capsys, log, "--total-steps", 400).out.rstrip().endswith(", over")


def test_every_update_is_a_line_until_the_last_step(log, capsys, grow):
    grow(append(log, rows(410, 500)), append(log, rows(510, 600)))
    lines = told(capsys, log, "--total-steps", 600).out.splitlines()
    assert [line.split(" of ")[0] for line in lines] == ["step 400", "step 500", "step 600"]


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path, capsys, grow):
    file = tmp_path / "later.csv"
    grow(lambda: file.write_text(HEADER), lambda: write(file, rows(10, 100)))
    told_ = told(capsys, file, "--total-steps", 100)
    assert told_.out.startswith("step 100 of 100")
    assert told_.err.splitlines() == [f"Waiting for '{file}'.", f"Waiting for the first rows of '{file}'."]


def test_a_metric_that_comes_later_is_waited_for(tmp_path, capsys, grow):
    file = tmp_path / "run.csv"
    header = "step,loss,val_acc\n"
    file.write_text(header + "10,2.0,\n20,1.9,\n")
    grow(append(file, [f"{step},1.8,{step / 1000}\n" for step in range(30, 101, 10)]))
    told_ = told(capsys, file, "--metric", "accuracy", "--total-steps", 100)
    assert "has no series 'accuracy': it has loss (train)" in told_.err
    assert told_.out.startswith("step 100 of 100 (100.0 %), validation accuracy 0.0")


PREAMBLE = {
    "text": "".join(f"layer.{number}.weight  [64, 64]\n" for number in range(200)),
    "jsonl": "".join(f'{{"config_{number}": {number}}}\n' for number in range(200)),
    "mlperf": "".join(f':::MLL 1.0 opt_{number}: {{"value": {number}}}\n' for number in range(200)),
}


@pytest.mark.parametrize(
    ("preamble", "row"),
    [
        ("text", "step {step} loss {loss}\n"),
        ("jsonl", '{{"step": {step}, "loss": {loss}}}\n'),
        ("mlperf", ':::MLL {step}.0 eval_loss: {{"value": {loss}, "metadata": {{"epoch_num": {step}}}}}\n'),
    ],
)
def test_a_run_that_has_only_told_of_itself_is_waited_for(tmp_path, capsys, grow, preamble, row):
    file = tmp_path / "run.log"
    file.write_text(PREAMBLE[preamble])
    grow(append(file, [row.format(step=step, loss=1 + 1 / step) for step in range(1, 101)]))
    seen = told(capsys, file, "--total-steps", 100)
    assert "Waiting: '" in seen.err
    assert " 100 of 100" in seen.out
    file.write_text(PREAMBLE[preamble])
    assert told(capsys, file, "--once", code=2).err.count("\n") == 1


def test_what_a_log_is_may_show_behind_its_preamble(tmp_path, capsys, grow):
    file = tmp_path / "run.log"
    file.write_text(PREAMBLE["text"])
    row = ':::MLL {step}.0 eval_accuracy: {{"value": {value}, "metadata": {{"epoch_num": {step}}}}}\n'
    grow(append(file, [row.format(step=step, value=1 - 1 / step) for step in range(1, 11)]))
    seen = told(capsys, file, "--epochs", 10)
    assert seen.out.startswith("epoch 10 of 10 (100.0 %), validation accuracy")


def test_a_pattern_that_matches_later_is_waited_for(tmp_path, capsys, grow):
    file = tmp_path / "run.log"
    file.write_text("loading\nstill loading\n")
    grow(append(file, [f"#{step} :: {1 + 1 / step}\n" for step in range(1, 101)]))
    seen = told(capsys, file, "--total-steps", 100, "--pattern", r"#(?P<step>\d+) :: (?P<loss>\S+)")
    assert "matches no line" in seen.err
    assert seen.out.startswith("step 100 of 100")


def test_a_strict_watch_does_not_wait_for_a_file_that_is_old_and_has_no_metric(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(PREAMBLE["text"])
    an_hour_ago = time.time() - 3600
    os.utime(file, (an_hour_ago, an_hour_ago))
    assert "give a pattern" in told(capsys, file, "--strict", code=2).err


def test_words_of_a_schedule_wait_for_the_length_of_an_epoch(tmp_path, capsys, grow):
    file = tmp_path / "run.csv"
    file.write_text("epoch,step,loss\n" + "".join(f"0,{step},{3 / step:.3f}\n" for step in range(1, 9)))
    grow(append(file, [f"{epoch},{step},0.3\n" for epoch in (1, 2) for step in range(1, 11)]), lambda: None)
    with pytest.raises(AssertionError, match="nothing more happens"):
        told(capsys, file, "--epochs", 90, "--lr", "cosine")
    assert "of 900" in capsys.readouterr().out


def test_lightning_is_watched_beyond_its_first_validation(tmp_path, capsys, grow):
    file = tmp_path / "metrics.csv"
    first = [f"0,{step},{2 / (1 + step):.4f}" for step in range(9, 100, 10)]
    later = [f"1,{step},{2 / (1 + step):.4f}," for step in range(109, 200, 10)]
    file.write_text("\n".join(["epoch,step,train_loss", *first]) + "\n")
    lines = ["epoch,step,train_loss,val_loss", *(f"{line}," for line in first), "0,99,,0.5", *later]
    grow(lambda: file.write_text("\n".join(lines) + "\n"))
    assert "step 199 of 200" in told(capsys, file, "--total-steps", 200).out


def test_a_restart_is_followed(log, capsys, grow):
    grow(append(log, rows(310, 350, late_s=5000.0)), append(log, rows(360, 600, late_s=5000.0)))
    told_ = told(capsys, log, "--total-steps", 600)
    assert [line.split(" of ")[0] for line in told_.out.splitlines()] == ["step 400", "step 350", "step 600"]
    assert "2.08 min (" in told_.out.splitlines()[1]  # 250 steps of 0.5 s, whatever the run stood still
    assert "Note: The run went back once" in told_.err


def test_a_log_that_is_truncated_is_read_from_its_start_and_that_is_told(log, capsys, grow):
    grow(lambda: write(log, rows(410, 450)), append(log, rows(460, 600)))
    told_ = told(capsys, log, "--total-steps", 600)
    assert told_.out.splitlines()[-1].startswith("step 600 of 600")
    assert "truncated or replaced once while it was watched" in told_.err


def test_a_log_that_is_rotated_is_followed_in_its_new_file(log, capsys, grow):
    def rotate():
        log.rename(log.with_suffix(".1"))
        write(log, rows(410, 500))

    grow(rotate, append(log, rows(510, 600)))
    assert told(capsys, log, "--total-steps", 600).out.splitlines()[-1].startswith("step 600 of 600")


def test_a_rule_that_holds_three_times_ends_with_code_3(log, capsys, grow):
    grow(*(append(log, rows(step, step)) for step in (410, 420, 430, 440)))
    rule = ["--stop-if", "p(target) < 0.05", "--target", "0.2", "--total-steps", "1000"]
    told_ = told(capsys, log, *rule, code=3)
    assert [line.split(" of ")[0] for line in told_.out.splitlines()] == ["step 400", "step 410", "step 420"]
    assert "Stopped: p(target) < 0.05 held for 3 updates (p(target) is 0" in told_.err


def test_one_look_is_enough_for_a_rule_that_holds(log, capsys):
    told(capsys, log, "--once", "--stop-if", "loss > 1", code=3)
    told(capsys, log, "--once", "--stop-if", "loss > 3", code=0)


def test_alarms_are_told_beside_the_line(log, capsys):
    told_ = told(capsys, log, "--once", "--step-s", 0.25)
    assert "Warning: Slower than forecast: a step takes 500 ms, 2.00 times the expected 250 ms." in told_.err


def test_a_log_that_was_last_written_long_ago_is_silent(log, capsys):
    an_hour_ago = time.time() - 3600
    os.utime(log, (an_hour_ago, an_hour_ago))
    assert "Warning: Silent: nothing was logged for 1.00 h; rows usually" in told(capsys, log, "--once").err


def test_silence_that_only_lasts_longer_is_no_update(log, capsys):
    from dataclasses import replace

    from traincast.cli.watch_screen import Lines
    from traincast.curves.log_question import LogQuestion
    from traincast.curves.status.status import status_of
    from traincast.logs.follow import LogFollower

    status = status_of(LogFollower(log).poll(), LogQuestion())
    lines = Lines(as_json=True)
    for warnings in [(), ("Silent: for 1 h.",), ("Silent: for 2 h.",)]:
        lines.update(replace(status, warnings=warnings))
    assert [json.loads(line)["warnings"] for line in capsys.readouterr().out.splitlines()] == [[], ["Silent: for 1 h."]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no log"),
        (b"", "has no row yet"),
        (b"\x00\x01\x02" * 1000, "is a binary file"),
        (b"step,loss\n" + b"1,nan\n" * 400, "with a finite value"),
    ],
    ids=["no file", "empty", "binary", "all NaN"],
)
def test_what_cannot_be_watched_is_one_sentence(tmp_path, capsys, content, words):
    file = tmp_path / "run.csv"
    if content is not None:
        file.write_bytes(content)
    err = told(capsys, file, "--once", code=2).err
    assert words in err
    assert err.count("\n") == 1


def test_a_folder_and_a_binary_file_end_a_strict_watch_at_once(tmp_path, capsys):
    assert "has no event files" in told(capsys, tmp_path, "--strict", code=2).err
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 20)
    assert "is a binary file" in told(capsys, tmp_path / "x.bin", "--strict", code=2).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stop-if", "p(target) < 0.05"], "needs a target"),
        (["--stop-if", "exit()"], "--stop-if cannot be 'exit()': give one of p(target), loss"),
        (["--interval", "0"], "--interval cannot be 0.0: give a number above 0"),
        (["--total-steps", "-5"], "--total-steps cannot be -5: give a number above 0"),
        (["--split", "dev"], "split 'dev' is not known"),
    ],
)
def test_wrong_options_are_one_sentence(log, capsys, arguments, words):
    assert words in told(capsys, log, "--once", *arguments, code=2).err


def test_constant_rising_and_short_logs_are_shown_too(tmp_path, capsys):
    for name, lines in {
        "constant": [f"{step},0,2.0,{step}\n" for step in range(1, 30)],
        "rising": [f"{step},0,{1 + step / 10},{step}\n" for step in range(1, 30)],
        "one": ["1,0,2.0,1\n"],
        "disorder": [f"{step},0,{3 / step:.3f},{number}\n" for number, step in enumerate([5, 3, 9, 1, 7, 2, 8, 4, 6])],
    }.items():
        file = tmp_path / f"{name}.csv"
        file.write_text("step,epoch,train_loss,seconds\n" + "".join(lines))
        assert told(capsys, file, "--once", "--total-steps", 100).out.startswith("step ")


def test_an_interrupt_ends_with_130_and_the_last_status_was_printed(log):
    process = subprocess.Popen(
        [sys.executable, "-m", "traincast", "watch", str(log), "--total-steps", "1000", "--interval", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert first.startswith("step 400 of 1,000")
    assert "Traceback" not in out + err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_screen_with_a_chart_and_a_band(log, monkeypatch, grow):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    grow(append(log, rows(410, 1000)))
    assert run(["watch", str(log), "--total-steps", "1000", "--target", "1.5"]) == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "Stopped" not in shown
    for part in ("step 400 of 1,000", "█", "at the end", "time left", "p(1.5)", "░", "step 1,000 of 1,000", "over"):
        assert part in shown


def test_what_is_told_on_a_terminal_stands_below_the_screen(log, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    from traincast.cli.watch_screen import Screen
    from traincast.curves.log_question import LogQuestion
    from traincast.curves.status.status import status_of
    from traincast.logs.follow import LogFollower

    with Screen() as screen:
        screen.tell("Waiting for it.")
        screen.update(status_of(LogFollower(log).poll(), LogQuestion(total_steps=1000)))
        screen.tell("Stopped: it holds.")
    last = terminal.getvalue().rpartition("run.csv")[2]
    assert last.index("time left") < last.index("Stopped: it holds.")
    assert "Waiting" not in last


NAN = [f"{step},,nan,{0.5 * step}\n" for step in range(410, 501, 10)]
RULE = ("--target", 1.2, "--stop-if", "p(target) < 0.05")


@pytest.mark.parametrize("how", [["--once"], []], ids=["at one look", "followed"])
def test_a_run_that_has_diverged_is_stopped_by_a_rule_on_its_target(tmp_path, capsys, grow, how):
    file = write(tmp_path / "run.csv", rows(10, 400), NAN)
    grow()
    found = told(capsys, file, "--total-steps", 1000, *RULE, *how, code=3)
    assert found.out.startswith("step 500 of 1,000 (50.0 %), epoch 5.0, loss not finite, diverged, ")
    assert "Warning: Diverged: 'train_loss' is not finite since step 410." in found.err
    assert "Stopped: p(target) < 0.05" in found.err


def test_one_row_that_is_not_finite_stops_no_run_that_goes_on(tmp_path, capsys, grow):
    file = write(tmp_path / "run.csv", rows(10, 400), NAN[:1])
    grow(append(file, rows(420, 1000)))
    assert told(capsys, file, "--total-steps", 1000, "--target", 1.5, *RULE[2:]).out.rstrip().endswith(", over")


def test_a_run_that_ended_at_its_first_value_that_is_not_finite_is_stopped_when_it_is_silent(tmp_path, capsys, grow):
    file = write(tmp_path / "run.csv", rows(10, 400), NAN[:1])
    long_ago_s = time.time() - 3600
    os.utime(file, (long_ago_s, long_ago_s))
    grow()
    assert "Stopped: p(target) < 0.05" in told(capsys, file, "--total-steps", 1000, *RULE, code=3).err


def test_a_diverged_run_at_its_last_step_ends_the_watch(tmp_path, capsys, grow):
    file = write(tmp_path / "run.csv", rows(10, 400), NAN)
    grow()
    assert told(capsys, file, "--total-steps", 500).out.rstrip().endswith("loss not finite, diverged, over")


def test_a_rule_on_the_time_left_needs_a_length_that_somebody_says(log, capsys, grow):
    grow()
    for how in (["--strict"], ["--once"]):
        err = told(capsys, log, *how, "--stop-if", "eta_s > 10", code=2).err
        assert f"The rule 'eta_s > 10' needs the length of the run, and '{log}' does not give it" in err


def test_a_rule_on_time_waits_for_a_clock(tmp_path, capsys, grow):
    file = write(tmp_path / "run.csv", rows(10, 20))
    grow(append(file, rows(30, 100)))
    found = told(capsys, file, "--total-steps", 100, "--stop-if", "eta_s > 1000")
    assert "Waiting: The rule 'eta_s > 1000' needs a clock, but fewer than three rows of" in found.err
    assert found.out.rstrip().endswith(", over")


def test_it_goes_on_as_other_runs_went(log, tmp_path, capsys):
    other = write(tmp_path / "whole.csv", rows(10, 1000))
    found = told(capsys, log, "--once", "--json", "--like", other, "--total-steps", 1000)
    assert json.loads(found.out)["end"]["p50"] == pytest.approx(1.4, rel=0.02)
    assert "is the run to forecast" in told(capsys, log, "--once", "--like", log, code=2).err


def test_an_accuracy_that_is_not_logged_is_told_from_the_loss_of_other_runs(log, tmp_path, capsys, grow):
    other = tmp_path / "both.csv"
    lines = [f"{line.rstrip()},{1.2 - 0.2 * float(line.split(',')[2]):.4f}\n" for line in rows(10, 1000)]
    other.write_text(HEADER.rstrip() + ",train_acc\n" + "".join(lines))
    grow()
    asked = ("--metric", "accuracy", "--relation-from", other)
    assert "accuracy from loss 0.8" in told(capsys, log, *asked, "--total-steps", 400).out
    assert "use the metric accuracy" in told(capsys, log, "--relation-from", other, code=2).err


def test_the_law_may_be_chosen(log, capsys):
    ends = [
        json.loads(told(capsys, log, "--once", "--json", "--total-steps", 1000, "--family", one).out)["end"]["p50"]
        for one in ("auto", "optimus")
    ]
    assert ends[0] != ends[1]
    assert "family 'optimos' is not known" in told(capsys, log, "--family", "optimos", code=2).err


def test_a_log_that_is_deleted_while_it_is_watched_is_told_and_waited_for(log, grow, capsys):
    grow(log.unlink, lambda: write(log, rows(10, 1000)))
    found = told(capsys, log, "--total-steps", 1000)
    assert f"Waiting: '{log}' no longer exists." in found.err
    assert found.out.splitlines()[-1].startswith("step 1,000 of 1,000")


# A watch goes on, whatever stands in the log


@pytest.mark.parametrize(
    "row",
    ["1e30,1.2,1.2,300", "four,hundred,and,ten", "410,4.1,none,205", '410,"4.1,1.2,205', "410", "\x01,\xff"],
)
def test_a_bad_row_never_ends_a_watch(log, capsys, grow, row):
    grow(append(log, [f"{row}\n"]), append(log, rows(420, 500)), append(log, rows(510, 600)))
    found = told(capsys, log, "--total-steps", 600, "--stop-if", "p(target) < 0.05", "--target", 1.5)
    assert found.out.splitlines()[-1].startswith("step 600 of 600")
    assert "Traceback" not in found.err


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "-5,-0.05,1.2,300",
            "1 row has a number in 'step' that is not a valid step (below 0, above 1e+15 or not finite)",
        ),
        ("410,4.1,-1e308,205", "'train_loss' is not finite in one row, at step 410"),
    ],
)
def test_a_row_that_cannot_be_is_told_and_left_out_alone(log, capsys, grow, row, words):
    watched = (log, "--total-steps", 600, "--stop-if", "p(target) < 0.05", "--target", 1.5)
    grow(append(log, [f"{row}\n"]), append(log, rows(420, 500)), append(log, rows(510, 600)))
    found = told(capsys, *watched)
    assert found.err.count(f"{words}: it is left out.") == 1
    later = [re.sub(r", eta.*", "", line) for line in found.out.splitlines() if re.match(r"step [56]00 ", line)]
    write(log, rows(10, 400), rows(420, 500))
    grow(append(log, rows(510, 600)))
    assert later == told(capsys, *watched).out.splitlines()  # as if the row had never been there


def test_what_a_look_cannot_make_sense_of_is_told_once_and_waited_for(log, capsys, grow):
    accuracies = log.with_name("acc.csv")
    accuracies.write_text("step,val_acc\n" + "".join(f"{step},{step / 1000}\n" for step in range(10, 101, 10)))
    grow(lambda: None, append(accuracies, [f"{step},{step / 1000}\n" for step in range(110, 601, 10)]))
    watched = (accuracies, "--metric", "accuracy", "--target", 150, "--total-steps", 600)
    with pytest.raises(AssertionError, match="nothing more happens"):
        told(capsys, *watched)
    assert capsys.readouterr().err.count("a target of 150 is outside that range") == 1
    assert "a target of 150 is outside that range" in told(capsys, *watched, "--strict", code=2).err


@pytest.mark.parametrize(
    ("rule", "asked", "words"),
    [
        ("p(target) < 0.05", [], "needs a target"),
        ("slower > 2", [], "needs the expected time of a step"),
        ("eta_s > 10", [], "needs the length of the run"),
        ("loss > 3", ["--metric", "accuracy"], "use the metric loss"),
    ],
)
def test_a_rule_that_lacks_something_is_told_and_stops_nothing(tmp_path, capsys, grow, rule, asked, words):
    file = tmp_path / "run.csv"
    lines = [f"{step},{1 / step},{1 - 1 / step},{step / 2}\n" for step in range(10, 401, 10)]
    file.write_text("step,train_loss,train_acc,seconds\n" + "".join(lines))

    def interrupt():
        raise KeyboardInterrupt

    grow(append(file, ["410,0.002,0.998,205\n"]), interrupt)
    err = told(capsys, file, "--stop-if", rule, *asked, code=130).err
    assert err.count(words) == 1
    grow()
    for at_once in ("--strict", "--once"):
        assert words in told(capsys, file, "--stop-if", rule, *asked, at_once, code=2).err


def test_a_log_that_cannot_be_read_for_a_while_is_told_and_waited_for(log, capsys, grow):
    def to_folder():
        log.unlink()
        log.mkdir()

    def back():
        log.rmdir()
        write(log, rows(10, 600))

    grow(to_folder, lambda: None, back)
    found = told(capsys, log, "--total-steps", 600)
    assert f"Waiting: '{log}' cannot be read: Is a directory." in found.err
    assert found.out.splitlines()[-1].startswith("step 600 of 600")
    write(log, rows(10, 400))
    grow(to_folder)
    assert "cannot be read" in told(capsys, log, "--total-steps", 600, "--strict", code=2).err


def test_a_strict_watch_ends_when_its_log_is_deleted(log, capsys, grow):
    grow(log.unlink)
    assert "no longer exists" in told(capsys, log, "--total-steps", 1000, "--strict", code=2).err


def test_what_is_no_log_may_be_replaced_by_one_of_another_format(tmp_path, capsys, grow):
    file = tmp_path / "run.log"
    file.write_text("1,2,3\n4,5,6\n")
    grow(lambda: file.write_text("".join(f'{{"step": {n}, "loss": {1 / n}}}\n' for n in range(1, 101))), lambda: None)
    found = told(capsys, file, "--format", "csv", "--total-steps", 100, "--strict", code=2)
    assert "starts with numbers" in found.err
    found = told(capsys, file, "--total-steps", 100)
    assert found.out.startswith("step 100 of 100")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--split", "dev"], "split 'dev' is not known"),
        (["--lr", "cosinus"], "is not a learning rate"),
        (["--pattern", "("], "is not a regular expression"),
        (["--stop-if", "p(target) < 5"], "a probability should be between 0 and 1"),
        (["--like", "nowhere.csv"], "There is no log 'nowhere.csv'"),
        (["--family", "optimos"], "family 'optimos' is not known"),
        (["--format", "xls"], "format 'xls' is not known"),
    ],
)
def test_a_mistake_in_the_command_line_is_refused_before_there_is_a_log(tmp_path, capsys, grow, arguments, words):
    grow()
    assert words in told(capsys, tmp_path / "later.csv", *arguments, code=2).err


def test_a_name_that_no_file_can_have_is_refused(capsys, grow):
    grow()
    assert "cannot be read: File name too long" in told(capsys, "x" * 300, code=2).err
    assert "FILE cannot be 'xxx" in told(capsys, "x" * 5000, code=2).err


def test_a_page_that_cannot_be_written_hides_no_rule_that_holds(log, tmp_path, capsys):
    (tmp_path / "page.html").symlink_to("/dev/full")
    arguments = (log, "--once", "--total-steps", 1000, "--html", tmp_path / "page.html")
    found = told(capsys, *arguments, "--stop-if", "loss > 1", code=3)
    assert "Cannot write" in found.err
    assert "Cannot write" in told(capsys, *arguments, code=2).err


def test_the_recipe_ends_the_training_for_code_3_and_no_other(log, tmp_path):
    recipe = re.search(r"^traincast watch run.csv.*$", (DOCS / "watch.md").read_text(), re.MULTILINE)[0]
    watched, _, then = recipe.partition(";")
    assert "--stop-if" in watched
    for code, is_ended in ((0, False), (1, False), (2, False), (3, True), (130, False), (137, False)):
        ended = tmp_path / f"ended-{code}"
        script = f"(exit {code}); {then.replace('kill $TRAINING', f'touch {ended}')}"
        subprocess.run(["sh", "-c", script], check=False)
        assert ended.exists() == is_ended


def test_help_says_what_each_exit_code_means(capsys):
    words = " ".join(told(capsys, "--help").out.split())
    assert "Exit codes: 0 the run is over; 3 --stop-if holds, and no other code means" in words
