"""Tables of runs with logs, what a whole transfer gives, and each model left out."""

import json

import numpy as np
import pytest

import traincast as tc
from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.held_out import each_held_out
from traincast.curves.size_transfer.ridge import codes_of, ridge
from traincast.curves.size_transfer.runs import Wanted, epochs_until, read_known_runs
from traincast.curves.size_transfer.study import over_sizes
from traincast.errors import InputError
from traincast.report.json_ import to_json

STEPS_PER_EPOCH = 10


def parameters(depth):
    return 2e-3 * depth**0.5, 1.2 * depth**-0.2, 0.02


def write_log(path, depth, *, n_epochs=40, in_epochs=False, noise=1.0):
    b0, b1, b2 = parameters(depth)
    steps = np.arange(1, n_epochs * STEPS_PER_EPOCH + 1)
    losses = noise / (b0 * steps + b1) + b2
    accuracies = np.exp(-0.8 * losses)
    if in_epochs:
        steps, losses, accuracies = (
            each[STEPS_PER_EPOCH - 1 :: STEPS_PER_EPOCH] for each in (steps, losses, accuracies)
        )
    header = "epoch,loss,acc" if in_epochs else "step,epoch,loss,acc"
    rows = [
        f"{'' if in_epochs else f'{step},'}{step / STEPS_PER_EPOCH:g},{loss:.6f},{acc:.6f}"
        for step, loss, acc in zip(steps, losses, accuracies, strict=True)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture
def table(tmp_path):
    """Four depths on two GPUs each, with logs, and one that is fitted already."""
    rows = ["model,depth,hardware,log,b0,b1,b2,epochs"]
    for depth in (10, 16, 24, 40):
        for gpu, noise in (("A", 0.99), ("B", 1.01)):
            write_log(tmp_path / f"{depth}{gpu}.csv", depth, noise=noise)
            rows.append(f"net{depth},{depth},{gpu},{depth}{gpu}.csv,,,,")
    b0, b1, b2 = parameters(32)
    rows.append(f"net32,32,A,,{b0},{b1},{b2},12")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_log_gives_the_parameters_and_the_epochs_to_a_target(table):
    first, *_, last = read_known_runs(table, Wanted(target=0.6))
    b0, b1, b2 = parameters(10)
    assert (first.fit.b0, first.fit.b1) == (pytest.approx(b0 / 0.99, rel=0.01), pytest.approx(b1 / 0.99, rel=0.01))
    assert first.fit.b2 == pytest.approx(b2, abs=0.01)
    reached = (0.99 / (-np.log(0.6) / 0.8 - b2) - b1) / b0 / STEPS_PER_EPOCH
    assert first.fit.epochs == pytest.approx(reached, abs=0.15)
    assert (first.steps_per_epoch, len(first.loss)) == (STEPS_PER_EPOCH, 400)
    assert (last.loss, last.fit.epochs) == (None, 12.0)


def test_a_target_that_a_log_does_not_reach_is_told(table):
    first, *_ = read_known_runs(table, Wanted(target=0.999))
    assert first.fit.epochs is None
    assert "net10: its log does not reach accuracy 0.999." in first.remarks


def test_the_curve_of_another_depth_follows_from_the_logs(table):
    found = tc.transfer(table, 20, target=0.6, n_epochs=40)
    b0, b1, b2 = parameters(20)
    steps = np.array([1.0, 100.0, 400.0])
    assert found.predicted.curve.predict(steps) == pytest.approx(1 / (b0 * steps + b1) + b2, rel=0.05)
    assert found.predicted.curve.total_steps == 400.0
    assert set(found.predicted.estimates) == {"b0", "b1", "b2", "epochs"}
    assert found.own == ()
    assert [each.model for each in found.held_out] == ["net10", "net16", "net24", "net32", "net40"]
    ours, theirs = (np.mean([getattr(each.errors["b1"], who) for each in found.held_out]) for who in ("ours", "ridge"))
    assert ours < 0.1 < theirs
    data = json.loads(to_json(found.to_dict()))
    assert set(data) >= {"parameters", "curve", "held_out", "ridge", "unit", "steps_per_epoch", "warnings"}


def test_a_model_of_that_size_is_compared_with_and_not_learned_from(table):
    found = tc.transfer(table, 24)
    assert {run.fit.model for run in found.own} == {"net24"}
    assert "net24" not in {run.fit.model for run in found.runs}
    assert found.mean("b0") == pytest.approx(parameters(24)[0], rel=0.02)
    assert found.predicted.parameters["b0"] == pytest.approx(found.mean("b0"), rel=0.1)
    assert found.to_dict()["fitted"]["b1"] == pytest.approx(parameters(24)[1], rel=0.02)


def test_a_degenerate_fit_of_the_model_itself_is_not_compared_with_and_nobody_learns_from_one(tmp_path):
    good = [f"net{depth},{depth},0.00{depth},0.6,0.5" for depth in (20, 32, 44)]
    bad = ["net18,18,15000,1e-14,1.4", "net50,50,16000,1e-14,1.7"]
    paths = []
    for name, lines in (("with", [*good, *bad]), ("without", good)):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(["model,depth,b0,b1,b2", *lines]) + "\n")
    found, clean = (tc.transfer(path, 50, total_steps=1_000) for path in paths)
    assert len(found.own) == 1
    assert (found.mean("b0"), found.to_dict()["fitted"]) == (None, None)
    assert found.ridge == clean.ridge
    told = "1 of 1 runs of the model itself is a degenerate fit, and nothing is compared with it."
    assert told in found.warnings


def test_runs_that_count_epochs_are_transferred_in_epochs(tmp_path):
    rows = []
    for depth in (10, 16, 24):
        write_log(tmp_path / f"{depth}.csv", depth, in_epochs=True)
        rows.append({"model": f"net{depth}", "depth": depth, "log": f"{depth}.csv"})
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(rows))
    found = tc.transfer(path, 20, n_epochs=60)
    assert (found.unit, found.predicted.curve.total_steps) == ("epoch", 60.0)
    b0, b1, b2 = parameters(20)
    assert found.predicted.curve.predict(60.0) == pytest.approx(1 / (b0 * 600 + b1) + b2, rel=0.1)
    write_log(tmp_path / "10.csv", 10)
    with pytest.raises(InputError, match=r"Some runs of .* count steps and others only epochs"):
        tc.transfer(path, 20)


def test_the_size_may_be_any_column(table, tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text(
        "model,parameters,b0,b1,b2\n" + "".join(f"m{n},{n}000000,{1e-4 * n},0.5,0.01\n" for n in (10, 20, 40))
    )
    found = tc.transfer(path, 30_000_000, by="parameters", total_steps=1_000)
    assert found.predicted.parameters["b0"] == pytest.approx(3e-3, rel=0.05)
    assert found.to_dict()["size_name"] == "parameters"
    assert [each.n_layers for each in over_sizes(found)][-1] == 40_000_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "so the length of a run is unknown: give its steps or epochs"),
        ({"n_epochs": 10}, "does not give the steps per epoch"),
        ({"total_steps": 10, "family": "tall"}, "No fit is of family 'tall'"),
    ],
)
def test_what_a_table_of_fits_does_not_say_must_be_given(options, words, tmp_path):
    path = tmp_path / "fits.csv"
    path.write_text("model,depth,b0,b1,b2\na,10,0.1,0.5,0\nb,20,0.2,0.5,0\nc,30,0.3,0.5,0\n")
    with pytest.raises(InputError, match=words):
        tc.transfer(path, 15, **options)


def fits(depths, family=""):
    return [
        Fit(model=f"{family}{depth}", n_layers=depth, family=family, b0=1e-3 * depth, b1=0.5, b2=0.01)
        for depth in depths
    ]


def test_each_model_is_left_out_if_its_family_has_another():
    found, remarks = each_held_out([*fits((10, 20, 30)), *fits((18,), "wide")], total_steps=1_000)
    assert [each.model for each in found] == ["10", "20", "30"]
    assert remarks == ("Without wide18 too little is left to predict it from.",)
    assert each_held_out(fits((10, 20)), total_steps=100)[0] == ()


def test_the_plain_ridge_by_hand():
    """With one row (x = 3, y = 6) and penalty 1 the weight is 6 / (9 + 1), and at 5 that is 5 * 3 * 0.6."""
    row = Fit(model="m", n_layers=3, gpu="A", b0=6.0, b1=1.0, b2=0.0)
    codes = codes_of([row])
    assert codes == {"A": 0.0}
    assert ridge([row], (5, "A"), "b0", codes) == pytest.approx(9.0)
    assert ridge([row], (5, "A"), "epochs", codes) is None


def written(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return tc.read_log(path)


def test_one_lucky_batch_is_no_target_reached(tmp_path):
    rows = [f"{step},{step / 100:g},2.0,{0.95 if step == 50 else 0.4 + step / 2000:.4f}" for step in range(1, 1001)]
    log = written(tmp_path / "log.csv", "step,epoch,loss,acc", rows)
    assert epochs_until(log, "accuracy", 0.8) == pytest.approx(8.0, abs=0.1)
    assert epochs_until(log, "accuracy", 0.94) is None


def test_what_was_evaluated_counts_before_what_was_trained(tmp_path):
    rows = [f"{epoch},2.0,{0.1 * epoch:g},{0.05 * epoch:g}" for epoch in range(1, 11)]
    log = written(tmp_path / "log.csv", "epoch,loss,acc,val_acc", rows)
    assert epochs_until(log, "accuracy", 0.4) == 8.0
    assert epochs_until(log, "accuracy", 40) == 8.0


def test_epochs_to_a_metric_that_rises(tmp_path):
    rows = [f"{epoch},2.0,{0.1 * epoch:g}" for epoch in range(1, 11)]
    assert epochs_until(written(tmp_path / "log.csv", "epoch,loss,val_f1", rows), "f1", 0.8) == 8.0


def test_epochs_of_the_table_are_not_those_of_another_target(table):
    """The first runs have logs; what a column says of epochs was to a target that nobody knows."""
    text = table.read_text().splitlines()
    table.write_text("\n".join([text[0], *(line + "99" if line.endswith(",") else line for line in text[1:])]) + "\n")
    first, *_ = read_known_runs(table, Wanted(target=0.6))
    assert first.fit.epochs < 40
