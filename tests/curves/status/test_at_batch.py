"""Epochs to a target at another batch size, from a log."""

import json

import numpy as np
import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.curves.status.at_batch import at_batch
from traincast.errors import InputError


def written(path, *, batch="128", header="step,epoch,loss,batch_size"):
    rows = [f"{step},{step / 100:g},{1 + 4 * (step / 10) ** -0.5:.5f},{batch}" for step in range(10, 401, 10)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def log(tmp_path):
    return written(tmp_path / "run.csv")


def test_pure_noise_keeps_the_epochs_and_pure_signal_the_steps(log):
    status = tc.converge(log, target=1.5, total_steps=1_000)
    noisy = at_batch(status, 1024, noise_scale=np.inf)
    assert noisy.epochs.p50 == pytest.approx(status.arrival.epochs.p50)
    assert noisy.steps.p50 == pytest.approx(status.arrival.steps.p50 / 8)
    clear = at_batch(status, 1024, noise_scale=0.0)
    assert clear.steps.p50 == pytest.approx(status.arrival.steps.p50)
    assert clear.epochs.p90 == pytest.approx(8 * status.arrival.epochs.p90)


def test_without_a_noise_scale_the_answer_is_less_sure(log):
    status = tc.converge(log, target=1.5, total_steps=1_000)
    usual = tc.at_batch(status, 1024)
    assert usual.noise_scale is None
    assert status.arrival.epochs.p50 < usual.epochs.p50 < 8 * status.arrival.epochs.p50
    reached, told = status.arrival.epochs, usual.epochs
    assert told.p50 / told.p10 > reached.p50 / reached.p10
    assert told.p90 / told.p50 > reached.p90 / reached.p50


def test_in_between_by_hand(log, capsys):
    """(1,024 + 1,024) / (1,024 + 128) = 1.78 times the epochs."""
    arguments = ("--target", "1.5", "--total-steps", "1000", "--batch-to", "1024", "--noise-scale", "1024")
    assert run(["converge", str(log), *arguments, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["at_batch"]["epochs"]["p50"] == pytest.approx(2048 / 1152 * found["arrival"]["epochs"]["p50"])
    assert run(["converge", str(log), *arguments]) == 0
    text = capsys.readouterr().out
    assert "step that reaches 1.5 at batch 1,024" in text
    assert "epochs until 1.5 at batch 1,024" in text


def test_without_the_flags_nothing_is_said_of_batches(log, capsys):
    assert run(["converge", str(log), "--target", "1.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["at_batch"] is None


def test_a_log_of_epochs_has_epochs_only(tmp_path):
    path = tmp_path / "epochs.csv"
    path.write_text("epoch,loss\n" + "".join(f"{n},{1 + n**-0.5}\n" for n in range(1, 30)))
    found = at_batch(tc.converge(path, target=1.15), 64, noise_scale=100.0, own_batch_size=32)
    assert found.steps is None
    assert found.epochs.p50 > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--batch-to", "256"), "--batch-to cannot be 256: give a noise scale, too"),
        (("--noise-scale", "256"), "--noise-scale cannot be 256.0: give a batch size to compare with, too"),
        (("--batch", "256"), "--batch cannot be 256: give a batch size to compare with, too"),
        (("--batch-to", "256", "--noise-scale", "9"), "give a target"),
        (("--batch-to", "256", "--noise-scale", "-9", "--target", "1.5"), "A noise scale is a number of samples"),
        (("--batch-to", "0", "--noise-scale", "9", "--target", "1.5"), "--batch-to cannot be 0: give a number above 0"),
    ],
)
def test_mistakes_are_one_sentence(log, capsys, arguments, words):
    assert run(["converge", str(log), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_log_without_a_batch_size_needs_one(tmp_path):
    path = written(tmp_path / "none.csv", batch="", header="step,epoch,loss,x")
    status = tc.converge(path, target=1.5)
    with pytest.raises(InputError, match="does not give its batch size: add it"):
        at_batch(status, 256, noise_scale=9.0)
    assert at_batch(status, 256, noise_scale=9.0, own_batch_size=128).at_batch == 128
    with pytest.raises(InputError, match=r"A batch size should be a number, not \[256\]"):
        at_batch(status, [256], noise_scale=9.0, own_batch_size=128)


def test_the_answer_of_converge_and_the_function_for_it_say_what_the_command_says(log, capsys):
    asked = {"target": 1.5, "total_steps": 1000}
    found = tc.converge(log, **asked, batch_to=1024, noise_scale=1024).at_batch
    assert found == tc.at_batch(tc.converge(log, **asked), 1024, noise_scale=1024)
    assert (
        run(
            [
                "converge",
                str(log),
                "--target",
                "1.5",
                "--total-steps",
                "1k",
                "--batch-to",
                "1k",
                "--noise-scale",
                "1024",
            ]
        )
        == 0
    )
    assert "at batch 1,000" in capsys.readouterr().out
    assert tc.converge(log, **asked).at_batch is None


def test_a_notebook_shows_both_batches(log):
    shown = tc.converge(log, target=1.5, batch_to=1024, noise_scale=9).at_batch._repr_html_()
    assert "1.5 at batch 1,024, in a run at 128" in shown
    assert "<th>epochs</th>" in shown
