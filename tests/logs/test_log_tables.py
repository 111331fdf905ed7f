"""CSV logs: headers, separators, sparse rows, several blocks, several runs."""

import gzip

import numpy as np
import pytest
from written_logs import table

import traincast as tc
from traincast.api.logs import read_logs
from traincast.errors import InputError


def test_a_header_with_spaces_and_steps_that_begin_again(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("epoch, step, loss, acc\n0, 0, 2.3, 10\n0, 1, 2.1, 20\n1, 0, 1.9, 30\n1, 1, 1.8, 40\n")
    log = tc.read_log(path)
    loss, accuracy = log.find("loss"), log.find("accuracy")
    assert log.format == "csv"
    assert log.steps_per_epoch == 2
    assert loss.steps.tolist() == [0, 1, 2, 3]
    assert loss.epochs.tolist() == [0, 0.5, 1, 1.5]
    assert accuracy.values.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert any("percent" in remark for remark in log.remarks)
    assert any("restart" in remark for remark in log.remarks)


@pytest.mark.parametrize("separator", [",", ";", "\t", " , "])
def test_the_separator_is_found(tmp_path, separator):
    path = tmp_path / "log"
    path.write_text("\n".join(separator.join(cells) for cells in (["step", "loss"], ["10", "2.5"], ["20", "2"])))
    assert tc.read_log(path).find("loss").values.tolist() == [2.5, 2]


def test_sparse_rows_of_lightning_become_series_of_their_own(tmp_path):
    rows = []
    for epoch in range(3):
        end = 100 * epoch + 99
        rows += [(epoch, end - 50, None, 2 - epoch, None, 0.1), (epoch, end, None, 1.5 - epoch, None, 0.1)]
        rows += [(epoch, end, None, None, 1.7 - epoch / 2, None), (epoch, end, 1.75 - epoch, None, None, None)]
    log = tc.read_log(
        table(tmp_path / "metrics.csv", "epoch,step,train_loss_epoch,train_loss_step,val_loss,lr-SGD", rows)
    )
    kinds = {one.name: (one.split, one.kind, len(one)) for one in log.series}
    assert kinds == {
        "train_loss_epoch": ("train", "epoch_mean", 3),
        "train_loss_step": ("train", "point", 6),
        "val_loss": ("validation", "point", 3),
    }
    assert log.find("loss", "validation").steps.tolist() == [99, 199, 299]
    assert log.steps_per_epoch == 100
    assert log.learning_rate.values.tolist() == [0.1] * 6


def test_our_own_columns(tmp_path):
    header = "step,epoch,train_loss,train_acc,val_loss,val_acc,seconds"
    rows = [(391 * epoch, epoch, 2 / epoch, None, 2.1 / epoch, 0.5, 60 * epoch) for epoch in (1, 2, 3)]
    log = tc.read_log(table(tmp_path / "own.csv", header, rows))
    train = log.find("loss", "train")
    assert (train.kind, log.steps_per_epoch) == ("epoch_mean", 391)
    assert train.epochs.tolist() == [1, 2, 3]
    assert train.seconds.tolist() == [60, 120, 180]
    assert [one.name for one in log.series] == ["train_loss", "val_loss", "val_acc"]


def test_a_gzipped_log_is_unpacked(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"step,loss\n1,2\n2,1\n"))
    assert tc.read_log(path).find("loss").values.tolist() == [2, 1]


def test_a_phase_column_tells_validation_from_training(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("phase,epoch,loss\ntrain,1,2\nval,1,2.5\ntrain,2,1\nval,2,1.5\n")
    log = tc.read_log(path, steps_per_epoch=10)
    assert log.find("loss", "train").values.tolist() == [2, 1]
    assert log.find("loss", "validation").values.tolist() == [2.5, 1.5]
    assert log.find("loss", "validation").steps.tolist() == [10, 20]


def test_validation_rows_that_count_their_own_batches_are_one_value_at_the_end_of_the_epoch(tmp_path):
    lines = ["phase,epoch,step,loss"]
    for epoch in range(3):
        lines += [f"train,{epoch},{step},{3 - epoch}" for step in range(10)]
        lines += [f"val,{epoch},{step},{3 - epoch + step / 10}" for step in range(4)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    validation = tc.read_log(path).find("loss", "validation")
    assert validation.steps.tolist() == [10, 20, 30]
    assert validation.values == pytest.approx([3.15, 2.15, 1.15])


def test_a_second_table_below_the_first_is_another_series_and_no_restart(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1,3\n2,2\n3,1\n\nstep,val_loss\n1,3.5\n3,1.5\n")
    log = tc.read_log(path)
    assert log.find("loss", "train").steps.tolist() == [1, 2, 3]
    assert log.find("loss", "validation").values.tolist() == [3.5, 1.5]
    assert log.restarts == ()


def test_a_title_above_a_second_table_says_what_it_is_of(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("# training\nstep,loss\n1,3\n2,2\n# validation\nstep,loss\n1,3.5\n2,2.5\n")
    assert tc.read_log(path).find("loss", "validation").values.tolist() == [3.5, 2.5]


def test_the_name_of_a_file_can_say_that_it_is_of_validation(tmp_path):
    assert tc.read_log(table(tmp_path / "val_log.csv", "step,loss", [(1, 2), (2, 1)])).series[0].split == "validation"


def test_odd_columns_are_named_by_the_user(tmp_path):
    path = table(tmp_path / "log.csv", "it,L1,foo", [(5, 2, 1), (10, 1, 0.5)])
    log = tc.read_log(path, columns={"step": "it", "loss": "L1", "val_loss": "foo"})
    assert log.find("loss").steps.tolist() == [5, 10]
    assert log.find("loss", "validation").values.tolist() == [1, 0.5]
    with pytest.raises(InputError, match=r"no column 'bar' for loss: it has it, L1, foo"):
        tc.read_log(path, columns={"loss": "bar"})


def test_a_file_of_several_runs_asks_which_one(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('curve_id,note,step,loss\na,"x, y",1,2\na,,2,1\nb,,1,4\nb,,2,3\n')
    with pytest.raises(InputError, match=r"2 runs: choose one\. It has a, b"):
        tc.read_log(path)
    with pytest.raises(InputError, match="no run 'c'"):
        tc.read_log(path, run="c")
    assert tc.read_log(path, run="b").find("loss").values.tolist() == [4, 3]
    assert {name: len(log.find("loss")) for name, log in read_logs(path).items()} == {"a": 2, "b": 2}


def test_runs_may_be_told_apart_by_several_columns(tmp_path):
    path = table(
        tmp_path / "log.csv", "gpus,batch,step,loss", [(1, 32, 1, 3), (1, 32, 2, 2), (2, 32, 1, 4), (2, 64, 1, 5)]
    )
    assert list(read_logs(path, columns={"run": "gpus,batch"})) == ["1/32", "2/32", "2/64"]


def test_times_of_day_become_seconds(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("timestamp,step,loss\n2024-06-06 12:00:00,1,2\n2024-06-06 12:01:30,2,1\n")
    assert tc.read_log(path).find("loss").seconds.tolist() == [0, 90]


def test_a_long_table_reads_the_same_in_pieces_and_reports_how_far_it_is(tmp_path):
    n = 60_000
    steps, losses = np.arange(n), np.round(3 / (1 + np.arange(n) / 1000), 5)
    path = tmp_path / "long.csv"
    path.write_text("step,loss,note\n" + "".join(f"{s},{v},{'x' * 80}\n" for s, v in zip(steps, losses, strict=True)))
    seen: list[float] = []
    loss = tc.read_log(path, on_progress=seen.append).find("loss")
    np.testing.assert_array_equal(loss.values, losses)
    np.testing.assert_array_equal(loss.steps, steps)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) > 1


def test_a_line_cut_short_is_counted(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss,acc\n1,2,0.5\n2,1\n")
    log = tc.read_log(path)
    assert log.find("loss").values.tolist() == [2, 1]
    assert any("1 lines are truncated" in remark for remark in log.remarks)
