"""`traincast transfer`: the curve of a size that has not run."""

import json

import pytest

import traincast as tc
from traincast.__main__ import run

ROWS = """model,num_layers,family,gpu,b0,b1,b2,epochs
net20,20,thin,T4,1.2e-4,0.68,0.03,58
net20,20,thin,V100,1.2e-4,0.67,0.03,55
net32,32,thin,T4,1.4e-4,0.66,0.02,51
net32,32,thin,V100,1.4e-4,0.65,0.02,49
net44,44,thin,T4,1.6e-4,0.63,0.02,44
net56,56,thin,T4,1.8e-4,0.61,0.02,40
net56,56,thin,V100,1.7e-4,0.62,0.02,38
wide18,18,wide,T4,2.7e-4,0.55,0.02,29
"""
LENGTH = ("--epochs", "300", "--steps-per-epoch", "391")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(ROWS)
    return str(path)


def told(capsys, *arguments, code=0):
    assert run(["transfer", *map(str, arguments)]) == code
    return capsys.readouterr()


def test_a_size_that_ran_is_compared_with_its_prediction(table, capsys):
    out = told(capsys, table, "--predict", "depth=44", *LENGTH).out
    assert "The learning curve of 44 layers before it runs" in out
    assert "family 'thin', from 7 runs of 4 models; compared with 1 run of the model itself" in out
    for words in ("b0", "p10", "fitted", "plain ridge", "its error", "Each model predicted from the others", "net56"):
        assert words in out
    assert "Does the hardware matter?" in out
    assert "Too few runs of one model on several kinds to tell: runs are pooled." in out
    assert "Without wide18 too little is left" in out


def test_a_new_size_of_one_of_two_families(table, capsys):
    assert "2 families (thin, wide): say which one" in told(capsys, table, "--predict", "depth=50", *LENGTH, code=2).err
    out = told(capsys, table, "--predict", "depth=50", "--family", "wide", *LENGTH).out
    assert "Of this family 'wide' only one model was run" in out
    assert "its error" not in out


def test_json_has_the_curve_the_errors_and_the_workers(table, capsys):
    arguments = ("--workers", "1-8", "--servers", "2,4", "--optimus", "paper-sync", "--batch", "128", "--json")
    data = json.loads(told(capsys, table, "--predict", "depth=44", *LENGTH, *arguments).out)
    assert data["parameters"]["epochs"]["p10"] < data["parameters"]["epochs"]["value"]
    assert len(data["curve"]["loss_p90"]) == len(data["curve"]["step"])
    assert data["held_out"][0]["errors"]["b0"]["ours"] < data["held_out"][0]["errors"]["b0"]["ridge"]
    two, four = data["workers"]
    assert (two["n_servers"], four["n_servers"], len(two["time_s"])) == (2, 4, 8)
    # epochs x 391 steps / (steps a second of Equation 4 with one worker and two servers)
    step_s = 1.02 * 128 + 2.78 + 4.92 / 2 + 0.02 * 2
    assert two["time_s"][0] == pytest.approx(data["parameters"]["epochs"]["value"] * 391 * step_s)


def test_the_whole_curve_is_a_table_and_its_speeds_have_a_name(table, capsys):
    arguments = ("--workers", "1-3", "--optimus", "cifar_resnet44@K80", "--batch", "128")
    out = told(capsys, table, "--predict", "depth=44", *LENGTH, *arguments).out
    rows = out.split("Time to the target for every number of workers\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert "Speeds: our forecast of cifar_resnet44 on machines with one K80 each and 10Gb/s between them" in out
    data = json.loads(told(capsys, table, "--predict", "depth=44", *LENGTH, *arguments, "--json").out)
    step_s = tc.forecast("cifar_resnet44", "3x1xK80@10Gb/s", 128, strategy="ps:4").step_s
    expected_s = data["parameters"]["epochs"]["value"] * 391 * step_s
    assert data["workers"][1]["time_s"][2] == pytest.approx(expected_s)


def test_a_page_has_every_chart(table, tmp_path, capsys):
    page = tmp_path / "page.html"
    out = told(capsys, table, "--predict", "depth=44", *LENGTH, "--workers", "1-16", "--html", page).out
    assert "Time to the target by workers" in out
    text = page.read_text()
    for title in ("Loss of 44 layers", "Error against the fitted curve", "b0 by depth", "epochs by depth", "2 servers"):
        assert title in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--predict", "depth", *LENGTH),
            "--predict 'depth' is not a column and a whole number from 1: write depth=50",
        ),
        (("--predict", "depth=1.5", *LENGTH), "--predict 'depth=1.5' is not a column and a whole number"),
        (("--predict", "width=3", *LENGTH), "there is no width"),
        (("--predict", "depth=44"), "give its steps or epochs"),
        (
            ("--predict", "depth=44", *LENGTH, "--servers", "2"),
            "--servers cannot be [2]: it is about the time by workers",
        ),
        (("--predict", "depth=44", *LENGTH, "--target", "0.9"), "A target needs logs"),
        (
            ("--predict", "depth=44", "--total-steps", "100", "--workers", "1-4"),
            "needs the steps per epoch: give them",
        ),
        (("--predict", "depth=44", *LENGTH, "--workers", "0"), "--workers '0' is not a list of whole numbers"),
        (
            ("--predict", "depth=44", *LENGTH, "--workers", "1", "--optimus", "paper-sync"),
            "paper-sync needs the global batch size",
        ),
        (("--predict", "depth=44", *LENGTH, "--rows", "val"), "has no rows of split 'val'"),
    ],
)
def test_mistakes_are_one_sentence(table, capsys, arguments, words):
    err = told(capsys, table, *arguments, code=2).err
    assert words in err
    assert err.count("\n") == 1


def test_workers_need_epochs_to_a_target(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    path.write_text("model,depth,b0,b1,b2\na,10,1e-4,0.5,0\nb,20,2e-4,0.5,0\nc,30,3e-4,0.5,0\n")
    err = told(capsys, path, "--predict", "depth=15", *LENGTH, "--workers", "1-4", code=2).err
    assert "The time by workers needs epochs to the target of 2 models or more" in err
