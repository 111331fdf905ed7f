"""A language model that does not fit: each way out is the same question changed, and says what it frees and costs."""

import json

import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.planning.ways_out import needs_way_out, ways_out

LENGTH = {"seqlen": 2048}


@pytest.fixture(scope="module")
def too_large():
    return tc.forecast("llama-3.2-1b", "RTX-4090", 4, **LENGTH)


def of(ways, change):
    return next(way for way in ways if way.change == change)


def test_what_fits_has_no_ways_out_and_is_not_asked_for_any():
    answer = tc.forecast("llama-3.2-1b", "RTX-4090", 1, **LENGTH)
    assert answer.fits
    assert ways_out(answer) == ()
    assert not needs_way_out(tc.forecast("resnet152", "T4", 4096))  # no language model


def test_recomputation_frees_and_costs_what_the_same_question_says(too_large):
    again = tc.forecast("llama-3.2-1b", "RTX-4090", 4, recompute="full", **LENGTH)
    way = of(ways_out(too_large), "recompute='full'")
    assert way.freed_bytes == too_large.peak_memory_bytes - again.peak_memory_bytes
    assert way.device_time_fraction == pytest.approx(again.step_s / too_large.step_s - 1)


def test_smaller_passes_make_the_same_update(too_large):
    way = of(ways_out(too_large), "accumulation_steps=4 (passes of 1 sample)")
    again = tc.forecast("llama-3.2-1b", "RTX-4090", 4, accumulation_steps=4, **LENGTH)
    assert way.fits
    assert way.forecast.peak_memory_bytes == again.peak_memory_bytes
    assert way.forecast.batch_size == too_large.batch_size


def test_those_that_fit_come_first_and_then_the_cheapest(too_large):
    ways = ways_out(too_large)
    keys = [(not way.fits, way.trains_less, way.device_time_fraction) for way in ways]
    assert keys == sorted(keys)
    assert all(way.freed_bytes > 0 for way in ways)


def test_an_adapter_is_another_training_and_stands_after_what_trains_all_weights(too_large):
    small = tc.forecast("llama-3.2-1b", "2xRTX-4090", 16, **LENGTH)
    ways = [way for way in ways_out(small) if way.fits]
    assert [way.trains_less for way in ways] == sorted(way.trains_less for way in ways)
    assert of(ways_out(too_large), "adapter='qlora:16'").catch.startswith("Fine-tuning only")


def test_more_devices_keep_the_samples_of_each():
    answer = tc.forecast("llama-3.1-8b", "A100-SXM4-80GB", 1, **LENGTH, precision="bf16", master_weights=True)
    way = next(way for way in ways_out(answer) if way.change.endswith("xA100-SXM4-80GB with fsdp"))
    n_devices = way.forecast.question.n_devices
    assert way.fits
    assert way.forecast.batch_size == n_devices
    assert not tc.forecast(
        "llama-3.1-8b", f"{n_devices // 2}xA100-SXM4-80GB", n_devices // 2, strategy="fsdp", **LENGTH
    ).fits


def test_several_changes_together_where_none_alone_is_enough():
    answer = tc.forecast("llama-3.1-8b", "8xH100-SXM5-80GB", 64, seqlen=8192)
    best = ways_out(answer)[0]
    assert best.fits
    assert best.change == "strategy='fsdp' and recompute='selective' and accumulation_steps=4 (passes of 2 samples)"
    asked = {"strategy": "fsdp", "recompute": "selective", "accumulation_steps": 4}
    assert tc.forecast("llama-3.1-8b", "8xH100-SXM5-80GB", 64, seqlen=8192, **asked).fits


def test_the_command_says_it_in_a_sentence_a_table_and_json(capsys):
    words = ["forecast", "llama-3.2-1b", "--on", "RTX-4090", "--batch", "4", "--seqlen", "2048"]
    assert run(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Cheapest way to fit: accumulation_steps=4 (passes of 1 sample) frees 19." in said
    assert "Ways to make it fit, cheapest first" in said
    assert run([*words, "--json"]) == 0
    ways = json.loads(capsys.readouterr().out)["ways_out"]
    assert ways[0]["change"] == "accumulation_steps=4 (passes of 1 sample)"
    assert run(["forecast", "llama-3.2-1b", "--on", "RTX-4090", "--batch", "1", "--seqlen", "2048", "--json"]) == 0
    assert "ways_out" not in json.loads(capsys.readouterr().out)


def test_where_nothing_is_enough_the_nearest_is_named(capsys):
    assert run(["forecast", "llama-3.1-405b", "--on", "A10", "--batch", "1"]) == 0
    assert "No way to fit was found; nearest is" in " ".join(capsys.readouterr().out.split())
