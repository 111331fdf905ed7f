"""A run of a language model reads as it was asked: in tokens, with what is booked for it first."""

import json

import pytest

from traincast.__main__ import run as main
from traincast.units import show_tokens

ASKED = ("forecast", "pythia-160m", "--on", "8xA100-SXM4-80GB", "--batch", "64")


@pytest.fixture
def printed(capsys):
    def run(*words):
        assert main([*ASKED, *words]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


def test_the_length_is_in_tokens_with_the_sequences_that_they_are(printed):
    said = printed("--tokens", "300B", "--price", "2")
    assert "The run is 300 B tokens (146,484,375 sequences of 2,048) at $16.00 per hour." in said


def test_a_run_in_samples_stays_one(printed):
    assert "The run is 3 epochs of 1,000 samples." in printed("--samples", "1000", "--epochs", "3")


def test_one_epoch_is_the_run_and_no_row_of_its_own(capsys):
    shown = {}
    for n_epochs in ("1", "3"):
        main([*ASKED, "--samples", "1000", "--epochs", n_epochs])
        shown[n_epochs] = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
    assert "total" in shown["1"]
    assert "epoch" not in shown["1"]
    assert "epoch" in shown["3"]


def test_tokens_utilisation_and_gpu_hours_come_first(capsys, printed):
    said = printed("--tokens", "300B")
    main([*ASKED, "--tokens", "300B", "--json"])
    data = json.loads(capsys.readouterr().out)
    after_fit = said.partition("usable. ")[2]
    assert after_fit.startswith(f"{data['tokens_per_s']:,.0f} tokens/s (p10-p90: ")
    assert f"MFU {100 * data['mfu']:.1f} %." in after_fit
    order = [after_fit.index(words) for words in ("tokens/s", "MFU", "GPU hours", "Run ", "Bound by", "Step ")]
    assert order == sorted(order)


def test_other_models_open_with_what_bounds_them(capsys):
    main(["forecast", "resnet18", "--on", "T4", "--batch", "8"])
    verdict = " ".join(capsys.readouterr().out.split())
    assert "usable. Bound by" in verdict
    assert "MFU" not in verdict


@pytest.mark.parametrize(
    ("n", "words"), [(1, "1 token"), (999, "999 tokens"), (2_500_000, "2.50 M tokens"), (15 * 10**12, "15.0 T tokens")]
)
def test_tokens_read_as_people_say_them(n, words):
    assert show_tokens(n) == words
