"""`traincast memory`, from the command line to the exit code."""

import json

import pytest

from traincast.__main__ import run
from traincast.units import GIB


def answer(capsys, *arguments):
    assert run(["memory", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_resnet50_with_adam_at_batch_64_peaks_at_5_46_gib(capsys):
    result = answer(capsys, "resnet50", "--batch", "64", "--optimizer", "adam")
    assert result["peak_bytes"] / GIB == pytest.approx(5.46, abs=0.01)
    assert result["peak_bytes_by_kind"]["activations"] / GIB == pytest.approx(5.08, abs=0.01)


def test_adam_keeps_two_states_a_parameter(capsys):
    result = answer(capsys, "vgg16", "--optimizer", "adam")
    assert result["peak_bytes_by_kind"]["optimizer state"] == pytest.approx(2 * 4 * 138_357_544, rel=1e-5)


def test_counts_are_of_numbers_and_not_of_bytes(capsys):
    arguments = ["cifar_resnet18", "--batch", "128", "--optimizer"]
    adam, sgd = (answer(capsys, *arguments, name)["counts"] for name in ("adam", "sgd"))
    assert adam["parameters"] == adam["gradients"] == {"n": 11_173_962, "bytes": 4 * 11_173_962}
    assert adam["optimizer states"]["n"] == 2 * 11_173_962 + 62  # and a step count for each of 62 tensors
    assert sgd["optimizer states"] == {"n": 0, "bytes": 0}
    assert run(["memory", *arguments, "adam", "--counts"]) == 0
    assert "optimizer states   22,347,986  85.3 MiB        4.00" in capsys.readouterr().out


def test_kinds_add_up_to_the_tracked_peak_and_the_rest_to_the_total(capsys):
    result = answer(capsys, "bert-base", "--batch", "8", "--precision", "amp-fp16")
    assert sum(result["peak_bytes_by_kind"].values()) == result["peak_bytes"]
    overhead = result["context_bytes"] + result["workspace_bytes"] + result["allocator_bytes"]
    assert result["total_bytes"] == result["peak_bytes"] + overhead


def test_the_largest_batch_fits_and_the_next_does_not(capsys):
    largest = answer(capsys, "resnet50", "--on", "T4")["largest_batch_size"]
    assert answer(capsys, "resnet50", "--on", "T4", "--batch", str(largest))["fits"] is True
    assert answer(capsys, "resnet50", "--on", "T4", "--batch", str(largest + 1))["fits"] is False


def test_what_cannot_fit_is_said(capsys):
    assert run(["memory", "gpt2-xl", "--on", "T4", "--optimizer", "adamw"]) == 0
    out = capsys.readouterr().out
    assert "Does not fit: needs" in out
    assert "Not even a batch of 1 fits." in out


def test_a_page_shows_the_curve_over_the_step(capsys, tmp_path):
    page = tmp_path / "memory.html"
    assert run(["memory", "resnet18", "--batch", "32", "--html", str(page)]) == 0
    text = page.read_text()
    assert "Bytes alive during one step of resnet18" in text
    assert "optimizer state" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet50", "--optimizer", "adamm"], "optimizer 'adamm' is not known. Close names: adam, adamw"),
        (["resnet50", "--precision", "half"], "precision 'half' is not known"),
        (["resnet50", "--on", "T5"], "No device named 'T5'"),
        (["resnet50", "--batch", "0"], "--batch cannot be 0: give a whole number of at least 1"),
        (["resnet50", "--html", "no/such/folder/page.html"], "the folder 'no/such/folder' does not exist"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    assert run(["memory", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1


def test_this_machine_is_known_once_it_was_calibrated(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    assert run(["memory", "mnist_cnn", "--on", "this-machine"]) == 2
    assert "This machine has not been calibrated: run 'traincast calibrate' first" in capsys.readouterr().err
    (tmp_path / "this-machine.toml").write_text(
        '[[device]]\nname = "this-machine"\nkind = "cpu"\nmemory_gib = 8\nmemory_gb_per_s = 20\n'
        'fp32_tflop_per_s = 0.1\nsource = "measured"\n'
    )
    assert answer(capsys, "mnist_cnn", "--on", "this-machine")["fits"]
