"""Plain-text logs: what is guessed, and what a pattern catches."""

import pytest
from written_logs import SPLIT_EPOCH

import traincast as tc
from traincast.errors import FileFormatError, InputError
from traincast.logs.text_lines import facts_of


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("Epoch 3/90 step 120/391 loss 0.532 acc 81.2%", {"epoch": 3, "step": 120, "loss": 0.532, "acc": 0.812}),
        ("[Epoch 3] loss=0.5 val_loss=0.6", {"epoch": 3, "loss": 0.5, "val_loss": 0.6}),
        (
            "391/391 [=====] - 12s 31ms/step - loss: 1.5 - val_accuracy: 0.5",
            {"step": 391, "loss": 1.5, "val_accuracy": 0.5},
        ),
        ("391/391 ━━━━━━━━ 12s 31ms/step - accuracy: 0.45 - loss: 1.5", {"step": 391, "accuracy": 0.45, "loss": 1.5}),
        ("Iteration 100, loss = 2.3", {"step": 100, "loss": 2.3}),
        ("    Test net output #0: accuracy = 0.5", {"test_accuracy": 0.5}),
        ("    Train net output #0: loss = 1.25 (* 1 = 1.25 loss)", {"train_loss": 1.25}),
        (
            "step:125/5100 val_loss:6.44 train_time:15000ms step_avg:120ms",
            {"step": 125, "val_loss": 6.44, "train_time_ms": 15000},
        ),
        (
            "Epoch: [0][ 10/5005]\tTime 0.3 (0.5)\tLoss 6.9e+00 (7.0e+00)",
            {"epoch": 0, "step": 10, "loss": 6.9, "time": 0.3},
        ),
        (
            "Test set: Average loss: 0.042, Accuracy: 9867/10000 (99%)",
            {"test_loss": 0.042, "test_accuracy": 0.9867},
        ),
        (
            "INFO:root:Epoch[0] Batch [100]\tSpeed: 433.5 samples/sec\taccuracy=0.8",
            {"epoch": 0, "step": 100, "accuracy": 0.8},
        ),
        ("INFO:root:Epoch[0] Validation-accuracy=0.96", {"epoch": 0, "validation_accuracy": 0.96}),
        ("Epoch 3:  45%|████▌ | 176/391 [00:12<00:15, 14.2it/s, loss=0.5]", {"epoch": 3, "step": 176, "loss": 0.5}),
        ("step 250: train loss 1.9, val loss 2.0", {"step": 250, "train_loss": 1.9, "validation_loss": 2.0}),
        ("iter 100: loss 2.5, lr 6.0e-4", {"step": 100, "loss": 2.5, "lr": 6e-4}),
        ("{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.5}", {"loss": 2.3, "learning_rate": 5e-5, "epoch": 0.5}),
        ("val loss 0.6 acc 0.8", {"validation_loss": 0.6, "validation_acc": 0.8}),
        (" * Acc@1 69.3 Acc@5 88.9", {"validation_acc_1": 69.3}),
        ("Test: [ 10/196]\tTime 0.3 (0.5)\tLoss 1.5 (1.4)", {"time": 0.3, "test_loss": 1.5}),
        (
            "Train: 3 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  LR: 1.0e-05",
            {"epoch": 3, "step": 50, "train_loss": 6.9, "lr": 1e-5},
        ),
        (
            " iteration   100/ 500000 | consumed samples: 1600 | learning rate: 1.5E-04 | lm loss: 9.5E+00",
            {"step": 100, "learning_rate": 1.5e-4, "loss": 9.5},
        ),
        (
            'train_inner | {"epoch": 1, "update": 0.102, "loss": "9.1", "num_updates": "100", "lr": "1e-05"}',
            {"epoch": 1, "step": 100, "train_loss": 9.1, "lr": 1e-5},
        ),
        ("Map: 100%|####| 50000/50000 [00:01<00:00, 9it/s]", {}),
        ("loading 50000 images, train dataset: 50000, batch: 128", {}),
        ("Using device cuda:0, 8 workers", {}),
    ],
)
def test_what_a_line_says(line, numbers):
    assert facts_of(line).numbers == pytest.approx(numbers)


def test_times_of_day_on_lines():
    lines = [
        "2024-06-06 12:00:00,500 INFO loss=1",
        "[2024-06-06T12:00:01.5] loss=1",
        "I0606 12:00:02.500000 12 s.cpp:1] loss = 1",
    ]
    first, second, third = (facts_of(line).numbers["timestamp"] for line in lines)
    assert second - first == pytest.approx(1)
    assert third % 86_400 - second % 86_400 == pytest.approx(1)  # without a year, the time of day is right


def test_epoch_lines_place_the_lines_below_them(tmp_path):
    """As Keras writes it: the epoch on one line, its numbers on the next, with a progress bar drawn over and over."""
    bar = "\r1/4 [>...] - ETA: 3s - loss: 2.5" + "\x08" * 5 + "\r4/4 [====] - 1s 2ms/step - loss: {} - val_loss: {}\n"
    path = tmp_path / "keras.txt"
    path.write_text("".join(f"Epoch {epoch}/5\n" + bar.format(3 - epoch, 3.5 - epoch) for epoch in (1, 2)))
    log = tc.read_log(path)
    assert (log.format, log.steps_per_epoch, log.n_epochs) == ("text", SPLIT_EPOCH, 5)
    assert log.find("loss", "validation").steps.tolist() == [4, 8]
    assert log.find("loss", "train").steps.tolist() == [1, 4, 5, 8]


def test_the_total_after_a_running_step_is_that_of_the_run(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("step:0/5100 val_loss:10.8 train_time:0ms\nstep:125/5100 val_loss:6.5 train_time:15000ms\n")
    log = tc.read_log(path)
    assert (log.total_steps, log.steps_per_epoch) == (5100, None)
    assert log.find("loss", "validation").seconds.tolist() == [0, 15]


def test_percentages_are_said(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("epoch 1 acc 50%\nepoch 2 acc 75.5%\n")
    log = tc.read_log(path)
    assert log.find("accuracy").values == pytest.approx([0.5, 0.755])
    assert any("percent" in remark for remark in log.remarks)


def test_a_pattern_reads_any_text(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("== 1\n#10 :: 2.5 / 80%\n#20 :: 2.0 / 85%\n== 2\n#30 :: nan / 90%\n")
    log = tc.read_log(path, pattern=r"#(?P<step>\d+) :: (?P<loss>\S+) / (?P<val_acc>\S+)")
    assert log.find("loss").steps.tolist() == [10, 20]
    assert log.find("loss").n_not_finite == 1
    assert log.find("accuracy", "validation").values == pytest.approx([0.8, 0.85, 0.9])


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"loss (\d+)", "has no named group"),
        (r"(?P<step>\d+)", "captures step, but neither a loss nor an accuracy"),
        (r"(?P<loss>", "is not a regular expression"),
    ],
)
def test_a_wrong_pattern_is_said(tmp_path, pattern, words):
    path = tmp_path / "log.txt"
    path.write_text("step 1 loss 2\n")
    with pytest.raises(InputError, match=words):
        tc.read_log(path, pattern=pattern)


def test_a_pattern_that_matches_nothing_is_said(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("step 1 loss 2\n")
    with pytest.raises(FileFormatError, match="matches no line"):
        tc.read_log(path, pattern=r"nothing (?P<loss>\d+)")


def test_a_text_without_metrics_asks_for_a_pattern(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("Starting training, please wait\nUsing device cuda:0, ok\n")
    with pytest.raises(FileFormatError, match="give a pattern"):
        tc.read_log(path)


NAMED = "epoch 1\nTest:\nloss 0.5\nepoch 2\nTest:\n{}\nloss 0.25\nstep 9 loss 2.0\n"


@pytest.mark.parametrize("bare", ["1", "[", "-0.5, 12", "1e", "  7", "3/4", "12:00:01", "_ 5"])
@pytest.mark.parametrize("n_lines", [1, 2, 1000])
def test_many_lines_without_a_name_mean_what_two_do(tmp_path, bare, n_lines):
    def series(n):
        path = tmp_path / "log.txt"
        path.write_text(NAMED.format("\n".join([bare] * n)))
        log = tc.read_log(path)
        return [(one.name, one.values.tolist(), list(one.steps)) for one in log.series]

    assert series(n_lines) == series(min(n_lines, 2))


def test_what_comes_after_millions_of_lines_that_say_nothing_is_left_out_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr("traincast.logs.text_rows._MOST_IN_VAIN", 1000)
    path, rows = tmp_path / "log.txt", [f"step {step} loss {2 - step / 100}\n" for step in range(60)]
    path.write_text("".join(rows[:30]) + "17\n" * 5000 + "waiting\n" * 900 + "".join(rows[30:]))
    assert tc.read_log(path).series[0].steps[-1] == 59
    path.write_text("".join(rows[:30]) + "waiting\n" * 1001 + "".join(rows[30:]))
    log = tc.read_log(path)
    assert log.series[0].steps[-1] == 29
    assert "Everything after 1,000 consecutive lines without a value is left out." in log.remarks


def test_what_comes_behind_an_evaluation_is_of_training_again(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(
        "".join(f"step {step} loss {9 / step}\nEvaluation done\nEvaluation results:\n" for step in (1, 2, 3))
    )
    log = tc.read_log(path)
    assert [(one.name, one.split, len(one)) for one in log.series] == [("loss", "train", 3)]


def test_a_title_is_for_the_lines_below_it(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(
        "".join(f"step {step} loss 2\nValidation:\n    loss: 3\n    accuracy: 0.5\nloss 4\n" for step in (1, 2))
    )
    log = tc.read_log(path)
    assert log.find("loss", "validation").values.tolist() == [3, 3]
    assert log.find("accuracy", "validation").steps.tolist() == [1, 2]
    assert log.find("loss", "train").values.tolist() == [3, 3]  # the mean of 2 and 4


@pytest.mark.parametrize("line", ["10:{at:02d}:00 loss {loss}", "{hour}: loss {loss}"])
def test_the_time_of_day_or_a_rank_before_a_line_is_no_step(tmp_path, line):
    path = tmp_path / "log.txt"
    path.write_text("".join(line.format(at=at, hour=at // 20, loss=9 / (at + 1)) + "\n" for at in range(40)))
    assert tc.read_log(path).find("loss").steps.tolist() == list(range(1, 41))


def test_a_line_with_nothing_but_a_learning_rate_is_no_row_of_its_epoch(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("".join(f"epoch {epoch} lr 0.1\n" + "loss 2.5\n" * 5 for epoch in (1, 2, 3)))
    assert tc.read_log(path).steps_per_epoch == 5


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.txt"])
def test_hours_and_minutes_since_the_start_are_a_clock(tmp_path, name):
    told = [(10, 3.0, "0:00:45"), (20, 2.5, "0:01:30.5"), (30, 2.2, "25:00:00")]
    form = {
        "log.csv": "{},{},{}\n",
        "log.jsonl": '{{"step": {}, "loss": {}, "elapsed": "{}"}}\n',
        "log.txt": "step {} | loss {} | elapsed {}\n",
    }[name]
    header = "step,loss,elapsed\n" if name == "log.csv" else ""
    (tmp_path / name).write_text(header + "".join(form.format(*row) for row in told))
    assert tc.read_log(tmp_path / name).find("loss").seconds.tolist() == [45, 90.5, 90_000]


def test_a_time_of_day_without_a_date_goes_on_over_midnight(tmp_path):
    path = tmp_path / "out.txt"
    times = ("23:59:00", "23:59:30.5", "00:00:00", "00:00:30")
    path.write_text("".join(f"[{at}] INFO step {step}: loss={3 - step}\n" for step, at in enumerate(times)))
    assert tc.read_log(path).find("loss").seconds.tolist() == [0, 30.5, 60, 90]


def test_a_place_out_of_so_many_before_a_line_is_its_step(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("".join(f"[{at}/40] loss: {3 - at / 40} | val_loss: {3.1 - at / 40}\n" for at in (10, 20, 30)))
    assert tc.read_log(path).find("loss", "validation").steps.tolist() == [10, 20, 30]
