"""Accuracies in percent without a sign: one unit for a whole column, from its first row to its last."""

import pytest
from written_logs import table

import traincast as tc
from traincast.logs.follow import LogFollower

EARLY = (0.5, 0.8, 1.2, 30, 60)


def accuracies(path, values=EARLY, name="acc"):
    return table(path, f"step,{name}", list(enumerate(values, 1)))


def test_a_column_that_begins_below_one_percent_is_in_percent_from_its_first_row_on(tmp_path):
    log = tc.read_log(accuracies(tmp_path / "log.csv"))
    assert log.find("accuracy").values.tolist() == pytest.approx([0.005, 0.008, 0.012, 0.3, 0.6])
    assert log.find("accuracy").in_percent
    assert "'acc' is in percent and is converted to a fraction." in log.remarks


def test_a_run_that_was_begun_again_is_still_in_percent(tmp_path):
    """The rows that went above 1 are superseded, and say what the others are."""
    file = tmp_path / "log.csv"
    rows = [*enumerate((0.5, 20, 60), 1), *enumerate((0.4, 0.7), 1)]
    file.write_text("step,acc\n" + "".join(f"{step},{value}\n" for step, value in rows))
    assert tc.read_log(file).find("accuracy").values.tolist() == pytest.approx([0.004, 0.007])


def test_a_log_that_grows_says_when_it_turns_out_to_be_in_percent(tmp_path):
    file = accuracies(tmp_path / "log.csv", EARLY[:2])
    follower = LogFollower(file)
    assert follower.poll().find("accuracy").values.tolist() == [0.5, 0.8]
    accuracies(file, EARLY)
    log = follower.poll()
    assert log.find("accuracy").values[0] == pytest.approx(0.005)
    told = "'acc' has exceeded 1, so it is in percent; until then it was read as a fraction."
    assert told in log.remarks
    with file.open("a") as out:
        out.write("6,70\n")
    assert told in follower.poll().remarks


def test_a_log_that_is_written_anew_keeps_its_unit(tmp_path):
    file = accuracies(tmp_path / "log.csv")
    follower = LogFollower(file)
    follower.poll()
    accuracies(file, (0.3, 0.6))
    log = follower.poll()
    assert log.find("accuracy").values.tolist() == pytest.approx([0.003, 0.006])
    assert not any("exceeded 1" in remark for remark in log.remarks)


def test_a_user_may_say_that_it_is_in_percent_before_it_shows(tmp_path):
    log = tc.read_log(accuracies(tmp_path / "log.csv", EARLY[:2]), columns={"acc_pct": "acc"})
    assert log.find("accuracy").values.tolist() == pytest.approx([0.005, 0.008])


@pytest.mark.parametrize("names", ["train_acc,val_acc", "val_top5,val_top1", "acc5,acc1"])
def test_an_accuracy_is_in_the_unit_of_those_beside_it(tmp_path, names):
    rows = [(1, 0.9, 0.2), (2, 1.9, 0.5), (3, 3.0, 0.8)]
    log = tc.read_log(table(tmp_path / "log.csv", f"step,{names}", rows))
    last = [one.values[-1] for one in log.series]
    assert last == pytest.approx([0.03, 0.008])


def test_units_that_differ_are_told_by_how_far_apart_they_are(tmp_path):
    rows = [(1, 40, 0.35), (2, 60, 0.55), (3, 80, 0.75)]
    log = tc.read_log(table(tmp_path / "log.csv", "step,train_acc,val_acc", rows))
    assert log.find("accuracy", "train").values.tolist() == pytest.approx([0.4, 0.6, 0.8])
    assert log.find("accuracy", "validation").values.tolist() == [0.35, 0.55, 0.75]


def test_an_f1_beside_an_accuracy_in_percent_has_its_own_unit(tmp_path):
    log = tc.read_log(table(tmp_path / "log.csv", "step,acc,f1", [(1, 2, 0.5), (2, 4, 0.6)]))
    assert log.find("f1").values.tolist() == [0.5, 0.6]
