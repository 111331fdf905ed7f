"""The largest batch, the longest sequence and the smallest GPU: what is said to fit does, and one more does not."""

import json

import pytest

import traincast as tc
from traincast.__main__ import run


def said(capsys, *words):
    code = run(["memory", *words])
    printed = capsys.readouterr()
    return code, " ".join((printed.out or printed.err).split())


def asked(capsys, *words):
    assert run(["memory", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_longest_sequence_fits_and_one_more_token_does_not():
    longest = tc.largest_that_fits("llama-3.2-1b", "seqlen", "RTX-4090", adapter="lora:16").best.value
    fit = [
        tc.forecast("llama-3.2-1b", "RTX-4090", 1, seqlen=length, adapter="lora:16").fits
        for length in (longest, longest + 1)
    ]
    assert fit == [True, False]


def test_recomputation_makes_room_for_longer_sequences():
    plain, again = (
        tc.largest_that_fits("llama-3.2-1b", "seqlen", "A100-SXM4-80GB", recompute=how).best.value
        for how in ("none", "full")
    )
    assert again > 1.5 * plain


def test_the_largest_batch_is_shared_evenly_by_all_devices():
    found = tc.largest_that_fits("pythia-160m", "batch", "4xT4", strategy="fsdp", precision="amp-fp16")
    largest = found.best.value
    assert largest % 4 == 0
    fit = [
        tc.forecast("pythia-160m", "4xT4", batch, strategy="fsdp", precision="amp-fp16").fits
        for batch in (largest, largest + 4)
    ]
    assert fit == [True, False]


def test_on_one_device_it_is_the_batch_that_memory_tells_without_being_asked():
    known = tc.estimate_memory("resnet50", 1, on="T4").largest_batch_size
    assert tc.largest_that_fits("resnet50", "batch", "T4").best.value == known


def test_all_positions_of_a_short_model(capsys):
    code, words = said(capsys, "pythia-70m", "--on", "H200-SXM", "--largest", "seqlen")
    assert code == 0
    assert "The longest sequence that fits has 2,048 tokens (batch 1), all positions of pythia-70m:" in words


def test_what_cannot_fit_at_any_length(capsys):
    data = asked(capsys, "llama-3.1-70b", "--on", "T4", "--largest", "seqlen")
    assert data["largest"] is None
    assert data["peak_memory_bytes"] > data["usable_memory_bytes"]
    assert "Not even 128 tokens (batch 1) fit:" in said(capsys, "llama-3.1-70b", "--on", "T4", "--largest", "seqlen")[1]


def test_a_sentence_first_and_the_doublings_after(capsys):
    _, words = said(capsys, "resnet50", "--on", "T4", "--largest", "batch")
    data = asked(capsys, "resnet50", "--on", "T4", "--largest", "batch")
    assert f"The largest batch that fits has {data['largest']:,} samples:" in words
    assert words.index("that fits has") < words.index("Memory on the way there")
    assert f"{data['largest'] + 1:,} 14.8 GiB NO" in words


def test_the_smallest_gpu_holds_it_and_none_with_less_memory_does(capsys):
    data = asked(capsys, "llama-3.1-8b", "--seqlen", "2048", "--adapter", "qlora:16", "--smallest-gpu")
    chosen = next(one for one in data["gpus"] if one["device"] == data["smallest_gpu"])
    assert chosen["fits"]
    assert not any(one["fits"] for one in data["gpus"] if one["memory_bytes"] < chosen["memory_bytes"])
    settings = {"seqlen": 2048, "adapter": "qlora:16"}
    assert tc.forecast("llama-3.1-8b", data["smallest_gpu"], 1, **settings).fits
    assert "T4" in data["without_units"]  # bf16


def test_no_gpu_holds_it(capsys):
    _, words = said(capsys, "llama-3.1-405b", "--smallest-gpu")
    assert "No GPU of the table holds batch 1 of 8,192 tokens:" in words


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("resnet50", "--on", "T4", "--largest", "seqlen"), "and 'resnet50' is none"),
        (("llama-3.2-1b", "--largest", "seqlen"), "needs a place: give --on"),
        (("llama-3.2-1b", "--on", "T4", "--largest", "seqlen", "--seqlen", "9"), "leave the sequence length out"),
        (("llama-3.2-1b", "--on", "T4", "--largest", "batch", "--batch", "9"), "leave the batch out"),
        (("llama-3.2-1b", "--on", "T4", "--largest", "length"), "Choose from: batch, seqlen"),
        (("llama-3.2-1b", "--on", "T4", "--smallest-gpu"), "leave --on out"),
        (("llama-3.2-1b", "--on", "T4", "--largest", "batch", "--smallest-gpu"), "two questions"),
        (("llama-3.2-1b", "--on", "T4", "--strategy", "fsdp"), "--strategy goes with --largest"),
    ],
)
def test_what_cannot_be_asked_gets_one_sentence(capsys, words, problem):
    code, sentence = said(capsys, *words)
    assert code == 2
    assert problem in sentence
    assert "Traceback" not in sentence
