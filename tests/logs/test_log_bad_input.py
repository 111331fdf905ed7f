"""Every bad input: one sentence that says what is wrong."""

import gzip

import pytest
from written_logs import table

import traincast as tc
from traincast.errors import FileFormatError, InputError


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"step,loss\n", r"a header \(step, loss\) and no rows yet"),
        (b"\x00\x01\x02\x03" * 100, "binary file"),
        (b"\x80\x04\x95\x10\x00\x00\x00.", "binary file"),
        (b"step,loss\nred,green\nblue,white\n", r"a header \(step, loss\) and no row with a number"),
        (b'step,loss\n1,"' + b"x" * 200_000 + b"\n", "is not a CSV table"),
        (b"step,grad_norm\n1,2\n2,3\n", "no loss, accuracy or other known metric.*it has step"),
        (b"step,loss\n1,nan\n2,nan\n", "with a finite value: it has step, loss"),
        (b"1,2\n3,4\n", "starts with numbers"),
        (b'"Step","a - loss","a - loss__MIN"\n1,,0.5\n2,,0.4\n', "columns for its runs and no value in them yet"),
        (b'{"a": {"b": 1}}\n', "no loss, accuracy"),
        (b'{"log_history": []}', "empty 'log_history'"),
        (b'{"log_history": [{"step": 1', "not a complete JSON file"),
        (b'{\n "a": 1\n}\n', "no list 'log_history'"),
        (b':::MLL 1.0 run_start: {"value": null}\n', "none with an accuracy or a loss"),
        (gzip.compress(b"step,loss\n1,2\n" * 1000, mtime=0)[:-30], "damaged gzip"),
    ],
)
def test_a_file_that_cannot_be_a_log(tmp_path, content, words):
    path = tmp_path / "some.log"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=words) as caught:
        tc.read_log(path)
    assert "some.log" in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="There is no log"):
        tc.read_log(tmp_path / "none.csv")


def test_a_folder_without_events(tmp_path):
    with pytest.raises(InputError, match="no event files"):
        tc.read_log(tmp_path)


def test_an_unknown_format(tmp_path):
    with pytest.raises(InputError, match=r"format 'xml' is not known. Choose from: csv, jsonl"):
        tc.read_log(tmp_path, format="xml")


@pytest.mark.parametrize("steps_per_epoch", [0, -1, float("nan"), float("inf")])
def test_an_epoch_without_steps(tmp_path, steps_per_epoch):
    with pytest.raises(InputError, match=r"steps_per_epoch cannot be .*: give a number"):
        tc.read_log(tmp_path, steps_per_epoch=steps_per_epoch)


def test_one_point_is_a_log(tmp_path):
    log = tc.read_log(table(tmp_path / "log.csv", "step,loss", [(1, 2)]))
    assert log.find("loss").values.tolist() == [2]


def test_a_series_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    log = tc.read_log(table(tmp_path / "log.csv", "step,loss,val_acc", [(1, 2, 0.5)]))
    with pytest.raises(
        InputError, match=r"no series 'acuracy': it has loss \(train\), accuracy \(validation\). Close names: accuracy"
    ):
        log.find("acuracy")
    with pytest.raises(InputError, match=r"no validation series 'loss': it has loss \(train\)[^.]*\.$"):
        log.find("loss", "validation")
    with pytest.raises(InputError, match="no split 'dev': choose train, validation, test"):
        log.find("loss", "dev")


def test_a_log_is_json(tmp_path):
    import json

    path = tmp_path / "log.csv"
    path.write_text("step,loss,seconds\n1,2,\n2,1,5\n")
    read = json.loads(json.dumps(tc.read_log(path).to_dict(), allow_nan=False))
    assert read["series"][0]["seconds"] == [None, 5]
