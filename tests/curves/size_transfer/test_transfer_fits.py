"""Fits of siblings from a file, and mistakes in it."""

import pytest

from traincast.curves.size_transfer.fits import Fit, read_fits, usable
from traincast.errors import FileFormatError, InputError

HEADER = "model,num_layers,gpu,split,b0,b1,b2,epoch_to_92acc"
TWO = f"""{HEADER}
resnet20,20,T4,train,1.2e-4,0.68,0.03,58
resnet32,32,T4,train,1.4e-4,0.65,1e-15,
"""


def written(tmp_path, text):
    path = tmp_path / "fits.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_becomes_a_fit(tmp_path):
    first, second = read_fits(written(tmp_path, TWO))
    assert first == Fit(model="resnet20", n_layers=20, gpu="T4", b0=1.2e-4, b1=0.68, b2=0.03, epochs=58.0)
    assert second.epochs is None


def test_other_columns_and_capitals_and_empty_lines_are_no_matter(tmp_path):
    text = "Model,num_layers,b0,b1,b2,epochs,who\nnet,10,0.1,0.5,0,3,me\n\nnet,10,0.1,0.5,0,4,me\n"
    assert [fit.epochs for fit in read_fits(written(tmp_path, text))] == [3.0, 4.0]


def test_a_table_may_be_json_and_say_depth_and_hardware(tmp_path):
    text = '[{"model": "net", "depth": 10, "hardware": "T4", "b0": 0.1, "b1": 0.5, "b2": 0, "epochs": null}]'
    (fit,) = read_fits(written(tmp_path, text))
    assert fit == Fit(model="net", n_layers=10, gpu="T4", b0=0.1, b1=0.5, b2=0.0)


def test_a_loss_that_falls_within_an_epoch_is_no_degenerate_fit():
    fast = {"model": "m", "n_layers": 1, "b0": 2.0, "b1": 0.4, "b2": 0.0}
    assert Fit(**fast).is_degenerate
    assert not Fit(**fast, counts_epochs=True).is_degenerate


def test_the_family_comes_from_the_file(tmp_path):
    path = written(tmp_path, "model,num_layers,family,b0,b1,b2\na,1,thin,0.1,0.5,0\nb,2,thin,0.1,0.5,0\n")
    assert [fit.family for fit in read_fits(path)] == ["thin", "thin"]


def test_training_and_validation_are_told_apart(tmp_path):
    path = written(tmp_path, TWO + "resnet32,32,T4,val,5e-3,0.6,0.5,33\n")
    assert [fit.b0 for fit in read_fits(path, split="val")] == [5e-3]
    with pytest.raises(InputError, match=r"rows of train and val: choose one, such as train"):
        read_fits(path)
    with pytest.raises(InputError, match="no rows of split 'test'; it has train, val"):
        read_fits(path, split="test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: it needs a header and one row per run"),
        ("b0\n1\n", "line 2: there is no model; a row needs model, depth or the size that is asked for, and b0"),
        ("model,b0\na,1\n", "line 2: there is no depth; .* it has model, b0"),
        (f"{HEADER}\na,20,T4,train,1,,0,\n", "line 2: there is no b1"),
        (f"{HEADER}\n", "has no runs"),
        (f"{HEADER}\na,{'1' * 200_000}\n", "is not a CSV table: field larger than field limit"),
        ("[1, 2]", "should be a list of objects, one per run"),
        ('[{"model": "a",', "is not valid JSON"),
        ('[{"model": "a", "depth": "deep"}]', "run 1: depth is 'deep', not a number"),
        (f"{HEADER}\na,b\n", "line 2: 2 cells where the header has 8"),
        (f"{HEADER}\na,20,T4,train,fast,1,0,\n", "line 2: b0 is 'fast', not a number"),
        (f"{HEADER}\na,20,T4,train,nan,1,0,\n", "line 2: b0 should be a finite number, not nan"),
        (f"{HEADER}\na,20,T4,train,-1,1,0,\n", "line 2: b0 of 'a' should be a number from 0, not -1"),
        (f"{HEADER}\na,20.5,T4,train,1,1,0,\n", "line 2: num_layers should be a whole number, not 20.5"),
        (f"{HEADER}\na,0,T4,train,1,1,0,\n", r"line 2: A model should have from 1 to 1e\+15 layers, not 0"),
        (f"{HEADER}\na,1e308,T4,train,1,1,0,\n", r"line 2: A model should have from 1 to 1e\+15 layers, not 1e\+308"),
        (
            f"{HEADER}\na,20,T4,train,1,1,0,0\n",
            r"line 2: The epochs of 'a' should be above 0 and at most 1e\+15, not 0",
        ),
        (f"{HEADER}\na,20,T4,train,1,1,0,1e308\n", r"line 2: The epochs of 'a' should be above 0 and at most 1e\+15"),
        (f"{HEADER}\na,20,T4,train,1e308,1,0,\n", r"line 2: b0 of 'a' should be a number from 0, not 1e\+308"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(text, message, tmp_path):
    with pytest.raises(FileFormatError, match=message):
        read_fits(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        read_fits(tmp_path / "none.csv")
    told = {
        b"\xff\xfe\x00\x80": "is UTF-16 text",
        b"\x80": "is not UTF-8 text",
        b"model,num_layers\x00": "a binary file",
    }
    for content, words in told.items():
        (tmp_path / "binary.csv").write_bytes(content)
        with pytest.raises(FileFormatError, match=words):
            read_fits(tmp_path / "binary.csv")


def test_degenerate_fits_are_left_out_and_named():
    good = [Fit(model=f"m{n}", n_layers=n, b0=1e-4, b1=0.5, b2=0.0) for n in (10, 20)]
    bad = Fit(model="m30", n_layers=30, b0=14_406.0, b1=1e-17, b2=1.4)
    kept, remarks = usable([*good, bad])
    assert list(kept) == good
    assert remarks == ("1 of 3 rows is a degenerate fit and left out (m30).",)
    assert usable(good)[1] == ()


def test_one_model_is_not_a_family():
    one = Fit(model="m", n_layers=10, b0=1e-4, b1=0.5, b2=0.0)
    with pytest.raises(InputError, match="needs fits of at least 2 models; of these 2 rows it can use 2"):
        usable([one, one])
