"""Logs that count epochs: whatever is told about them is told in epochs, with fractions."""

import json

import numpy as np
import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.cli.terminal_chart import chart_lines
from traincast.curves.status.status_line import count, line_of
from traincast.errors import InputError

LEVEL = 0.3


def loss_at(epoch):
    return LEVEL + 1.5 * np.asarray(epoch) ** -0.6


@pytest.fixture
def log(tmp_path):
    """Thirty epochs, a minute each, with a loss and a validation accuracy."""
    path = tmp_path / "epochs.csv"
    rows = [f"{n},{loss_at(n):.5f},{1 - 0.5 * loss_at(n):.5f},{60 * n}" for n in range(1, 31)]
    path.write_text("\n".join(["epoch,loss,val_acc,seconds", *rows]) + "\n")
    return path


@pytest.fixture
def halves(tmp_path):
    """Every half epoch."""
    path = tmp_path / "halves.csv"
    rows = [f"{n / 2},{loss_at(n / 2):.5f},{30 * n}" for n in range(1, 26)]
    path.write_text("\n".join(["epoch,loss,seconds", *rows]) + "\n")
    return path


def test_the_log_says_that_it_counts_epochs(log, halves, tmp_path):
    assert tc.read_log(log).counts_epochs
    assert tc.read_log(halves).counts_epochs
    assert not tc.read_log(log, steps_per_epoch=10).counts_epochs
    both = tmp_path / "both.csv"
    both.write_text("epoch,step,loss\n" + "".join(f"{n},{10 * n},{1 / n}\n" for n in range(1, 9)))
    assert not tc.read_log(both).counts_epochs


def test_a_target_is_reached_at_an_epoch(log):
    found = tc.converge(log, target=float(loss_at(45)), n_epochs=60, learning_rate="constant", usd_per_hour=60)
    assert (found.unit, found.total_steps, found.epochs) == ("epoch", 60.0, 30.0)
    assert found.arrival.unit == "epoch"
    assert found.arrival.epochs == found.arrival.steps
    assert found.arrival.epochs.p50 == pytest.approx(45, rel=0.15)
    assert found.left_s.p50 == pytest.approx(30 * 60, rel=0.01)
    assert found.left_usd.p50 == pytest.approx(30, rel=0.01)  # a dollar a minute
    assert found.to_dict()["unit"] == "epoch"


def test_the_curve_itself_may_be_over_epochs_with_fractions():
    epochs = np.arange(1, 41) / 4
    curve = tc.fit_curve(epochs, loss_at(epochs), total_steps=20.5, learning_rate={0: 0.1})
    assert curve.predict(20.5) == pytest.approx(loss_at(20.5), rel=0.02)
    assert curve.steps_to(float(loss_at(12.25))) == pytest.approx(12.25, rel=0.1)


def test_the_document_speaks_of_epochs(log, capsys):
    assert run(["converge", str(log), "--epochs", "60", "--target", "0.5", "--lr", "constant"]) == 0
    text = capsys.readouterr().out
    assert "30 points to epoch 30 of 60" in text
    assert "epoch that reaches 0.5" in text
    assert "An epoch takes 1.00 min by the log's clock." in text
    assert "step that reaches" not in text
    assert "A step takes" not in text


def test_the_watch_line_and_screen_speak_of_epochs(halves, capsys):
    assert run(["watch", str(halves), "--once", "--epochs", "20.5", "--target", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("epoch 12.5 of 20.5 (61.0 %), loss ")
    from traincast.cli.watch_screen import chart_of
    from traincast.curves.status.status_line import facts_of

    status = tc.converge(halves, n_epochs=20.5, target=0.7, learning_rate="constant")
    names = [name for name, _ in facts_of(status)]
    assert "an epoch" in names
    assert "reached at epoch" in names
    assert not any("step" in name for name in names)
    assert chart_of(status, 80, 6)[-1].split() == ["0.5", "20.5"]


def test_json_carries_the_unit(halves, capsys):
    assert run(["watch", str(halves), "--once", "--json", "--epochs", "20.5", "--target", "0.5"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["unit"], data["step"], data["epochs"], data["arrival"]["unit"]) == ("epoch", 12.5, 12.5, "epoch")


def test_the_last_but_one_of_many_epochs_is_not_the_end(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("epoch,loss\n" + "".join(f"{n},{loss_at(n):.5f}\n" for n in range(1, 350)))
    assert not tc.converge(path, n_epochs=350).is_over
    assert tc.converge(path, n_epochs=349).is_over


def test_a_loss_that_is_not_finite_is_so_since_an_epoch(halves):
    halves.write_text(halves.read_text() + "13.5,nan,405\n13.5,inf,406\n")
    found = tc.converge(halves)
    assert any("since epoch 13.5" in text for text in found.warnings)
    assert any("rows, first at epoch 13.5" in text for text in found.remarks)


def test_steps_that_are_not_epochs_cannot_be_told_in_epochs(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("step,loss\n" + "".join(f"{n},{loss_at(n):.5f}\n" for n in range(1, 30)))
    with pytest.raises(InputError, match="counts steps and does not give the steps per epoch"):
        tc.converge(path, n_epochs=9)
    assert run(["watch", str(path), "--once", "--epochs", "9"]) == 0  # more rows may tell
    known = tc.converge(path, n_epochs=9, reading={"steps_per_epoch": 10})
    assert (known.total_steps, known.unit, known.epochs) == (90.0, "step", 2.9)


def test_the_flag_gives_the_steps_of_an_epoch(log, capsys):
    assert run(["converge", str(log), "--epochs", "60", "--steps-per-epoch", "10", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["unit"], found["total_steps"], found["epochs"]) == ("step", 600.0, 30.0)


def test_a_forecast_of_a_step_is_one_of_an_epoch(log):
    forecast = tc.forecast("resnet18", on="T4", batch_size=32, n_samples=3200)
    found = tc.converge(log, n_epochs=60, step=forecast)
    assert found.speed.step_s == pytest.approx(forecast.epoch_s)
    with pytest.raises(InputError, match="the forecast has no time per epoch: give it n_samples"):
        tc.converge(log, n_epochs=60, step=tc.forecast("resnet18", on="T4", batch_size=32))


@pytest.mark.parametrize(
    ("number", "unit", "words"),
    [(12.5, "epoch", "12.5"), (90.0, "epoch", "90"), (1234.0, "step", "1,234"), (np.inf, "epoch", "never")],
)
def test_numbers_of_steps_are_whole_and_those_of_epochs_may_not_be(number, unit, words):
    assert count(number, unit) == words


def test_a_status_in_one_line(log):
    assert line_of(tc.converge(log, n_epochs=60)).startswith("epoch 30 of 60 (50.0 %), loss 0.")


def test_a_short_axis_has_fractions():
    x = np.array([0.25, 0.5, 1.75])
    assert chart_lines(x, x)[-1].split() == ["0.25", "1.75"]
