"""Which series is meant: by a metric, by a column's own name or a part of it, or by nothing at all."""

import pytest
from written_logs import table

import traincast as tc
from traincast.curves.status.stop_rule import read_rule
from traincast.errors import InputError
from traincast.logs.follow import LogFollower
from traincast.logs.reading import Reading

ULTRALYTICS = (
    "                  epoch,                   time,         train/box_loss,         train/cls_loss,"
    "         train/dfl_loss,   metrics/precision(B),      metrics/recall(B),       metrics/mAP50(B),"
    "    metrics/mAP50-95(B),           val/box_loss,           val/cls_loss,           val/dfl_loss,"
    "                 lr/pg0,                 lr/pg1,                 lr/pg2"
)


def detector(path, n_epochs=30):
    lines = [ULTRALYTICS]
    for epoch in range(1, n_epochs + 1):
        worse = 1 / epoch
        cells = (
            epoch, 21.5 * epoch, 1 + worse, 2 + worse, 3 + worse, 0.5 - 0.4 * worse, 0.6 - 0.4 * worse,
            0.7 - 0.4 * worse, 0.4 - 0.3 * worse, 1.5 + worse, 2.5 + worse, 3.5 + worse, 0.01, 0.02, 0.03,
        )  # fmt: skip
        lines.append(",".join(f"{cell:>23.5g}" for cell in cells))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_detector_is_shown_by_its_validation_loss_and_told_which_part(tmp_path):
    status = tc.converge(detector(tmp_path / "results.csv"), n_epochs=100)
    assert (status.series.name, status.series.split, status.unit) == ("val/box_loss", "validation", "epoch")
    told = "The loss is logged in parts: 'val/box_loss' is shown; other metrics: cls_loss, dfl_loss."
    assert told in status.remarks
    assert status.pace.step_s == pytest.approx(21.5)
    assert status.log.learning_rate.values[0] == 0.01


@pytest.mark.parametrize(
    ("metric", "split", "name"),
    [
        ("loss", None, "val/box_loss"),
        ("loss", "train", "train/box_loss"),
        (None, "train", "train/box_loss"),
        ("cls_loss", None, "val/cls_loss"),
        ("mAP50", None, "metrics/mAP50(B)"),
        ("map50-95", None, "metrics/mAP50-95(B)"),
        ("Precision", None, "metrics/precision(B)"),
        ("val/dfl_loss", None, "val/dfl_loss"),
        ("dfl", "train", "train/dfl_loss"),
    ],
)
def test_what_is_asked_of_a_detector(tmp_path, metric, split, name):
    assert tc.converge(detector(tmp_path / "results.csv"), metric=metric, split=split).series.name == name


def test_a_part_of_several_names_is_answered_with_them(tmp_path):
    log = tc.read_log(detector(tmp_path / "results.csv"))
    with pytest.raises(
        InputError, match=r"several series 'map': choose one of metrics/mAP50\(B\), metrics/mAP50-95\(B\)"
    ):
        log.find("map")


def test_a_loss_in_one_part_is_just_that_loss(tmp_path):
    rows = [(epoch, 2 / epoch, 3 / epoch) for epoch in range(1, 20)]
    status = tc.converge(table(tmp_path / "log.csv", "epoch,train_box_loss,val_box_loss", rows))
    assert status.series.name == "val_box_loss"
    assert not any("in parts" in remark for remark in status.remarks)


def test_of_accuracies_alone_that_of_validation_is_shown(tmp_path):
    rows = [(epoch, 1 - 0.5 / epoch, 0.9 - 0.5 / epoch) for epoch in range(1, 20)]
    assert tc.converge(table(tmp_path / "log.csv", "epoch,train_acc,val_acc", rows)).series.name == "val_acc"


@pytest.mark.parametrize(("metric", "name"), [("acc", "val/accuracy"), ("Accuracy", "val/accuracy"), ("err", "my_err")])
def test_a_metric_in_another_spelling(tmp_path, metric, name):
    log = tc.read_log(
        table(tmp_path / "log.csv", "step,val/accuracy,my_err", [(1, 0.5, 0.5), (2, 0.6, 0.4)]), metric=metric
    )
    assert log.find(metric).name == name


@pytest.mark.parametrize("metric", ["l2", "L2", " l2 "])
def test_a_column_is_found_by_its_own_name(tmp_path, metric):
    rows = [(step, 3 / step, 1, 5 + 4 / step) for step in range(1, 30)]
    status = tc.converge(table(tmp_path / "log.csv", "step,loss,note,l2", rows), metric=metric)
    assert (status.series.name, status.series.values[0]) == ("l2", 9)
    assert "'l2' is assumed to be better when lower." in status.remarks


def test_a_key_of_json_lines_and_a_word_of_text_are_found_by_their_names(tmp_path):
    (tmp_path / "log.jsonl").write_text(
        "".join(f'{{"step": {n}, "loss": 1, "grad_norm": {9 / n}}}\n' for n in range(1, 9))
    )
    (tmp_path / "log.txt").write_text("".join(f"step {n} loss 1 grad_norm: {9 / n}\n" for n in range(1, 9)))
    for name in ("log.jsonl", "log.txt"):
        status = tc.converge(tmp_path / name, metric="grad_norm")
        assert (status.series.name, len(status.series), status.series.values[0]) == ("grad_norm", 8, 9)


def test_a_column_that_is_asked_for_is_followed(tmp_path):
    file = table(tmp_path / "log.csv", "step,loss,l2", [(1, 2, 7), (2, 1, 6)])
    follower = LogFollower(file, Reading(metric="l2"))
    assert follower.poll().find("l2").values.tolist() == [7, 6]
    with file.open("a") as out:
        out.write("3,1,5\n")
    assert follower.poll().find("l2").values.tolist() == [7, 6, 5]


def test_a_miss_lists_what_there_is(tmp_path):
    file = table(tmp_path / "log.csv", "step,loss,l2,lr", [(1, 2, 7, 0.1), (2, 1, 6, 0.1)])
    with pytest.raises(InputError, match=r"no series 'foo': it has loss \(train\), and columns .*: l2\."):
        tc.converge(file, metric="foo")


def test_a_table_of_unknown_columns_is_one_and_says_what_to_do(tmp_path):
    file = table(tmp_path / "log.csv", "it_no,L1,foo", [(step, 2 / step, 1) for step in range(1, 20)])
    with pytest.raises(tc.TraincastError, match=r"it has it_no, L1, foo\. Name the column that is one\."):
        tc.read_log(file)
    log = tc.read_log(file, columns={"step": "it_no", "loss": "L1"})
    assert (log.format, log.find("loss").steps[-1]) == ("csv", 19)
    assert tc.converge(file, metric="L1", reading={"columns": {"step": "it_no"}}).series.name == "L1"


def test_a_name_that_the_user_gives_to_a_column_is_a_metric(tmp_path):
    file = table(tmp_path / "log.csv", "n,a b,c", [(step, 2 / step, 1) for step in range(1, 20)])
    log = tc.read_log(file, columns={"step": "n", "wibble": "a b"})
    assert [(one.name, one.metric, one.values[0]) for one in log.series] == [("wibble", "wibble", 2)]


def test_a_table_is_known_by_one_named_column_while_it_has_only_a_header(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("n,weird\n")
    with pytest.raises(tc.TraincastError, match=r"a header \(n, weird\) and no rows yet"):
        tc.read_log(file, columns={"loss": "weird"})


def test_a_part_of_a_loss_is_a_loss_for_a_stop_rule(tmp_path):
    status = tc.converge(detector(tmp_path / "results.csv"), n_epochs=100)
    assert read_rule("loss > 0.5").holds(status)
