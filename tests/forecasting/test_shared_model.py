"""Forecasts of models that several devices share: counts, parts, memory, warnings, and what a wrong question gets."""

import re

import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.errors import InputError

UNCHECKED = "Tensor and pipeline parallelism are modelled, but not yet checked against measurements."


@pytest.fixture(scope="module")
def gpt2():
    return tc.load_model("gpt2")


@pytest.fixture(scope="module")
def gpt2_xl():
    return tc.load_model("gpt2-xl")


def ask(model, on="8xA100-SXM4-40GB", batch_size=16, **options):
    return tc.forecast(model, on, batch_size, precision="amp-bf16", optimizer="adamw", **options)


def test_replicas_share_the_batch(gpt2):
    question = ask(gpt2, accumulation_steps=2, tensor_parallel=2, pipeline_parallel=2).question
    assert (question.n_devices, question.n_replicas, question.micro_batch_size) == (8, 2, 4)
    assert question.held_fraction == 1 / 4


def test_one_and_one_is_the_forecast_without(gpt2):
    known, found = ask(gpt2), ask(gpt2, tensor_parallel=1, pipeline_parallel=1)
    assert found.to_dict() == known.to_dict()
    assert UNCHECKED not in known.warnings


@pytest.mark.parametrize(("tensor", "pipeline"), [(2, 1), (1, 2), (2, 4), (8, 1)])
def test_parts_add_up_and_it_says_that_nothing_checked_it(gpt2, tensor, pipeline):
    found = ask(gpt2, accumulation_steps=2, tensor_parallel=tensor, pipeline_parallel=pipeline)
    data = found.to_dict()
    assert (data["tensor_parallel"], data["pipeline_parallel"]) == (tensor, pipeline)
    parts = found.forward_s + found.loss_s + found.backward_s + found.optimizer_s + found.exposed_communication_s
    assert found.step_s == pytest.approx(parts)
    assert 0 < found.flop_utilisation < 1
    assert UNCHECKED in found.warnings


def test_a_pipeline_with_too_few_passes_says_how_idle_it_is(gpt2):
    few = ask(gpt2, accumulation_steps=1, pipeline_parallel=4)
    assert any("1 pass for 4 stages leaves the pipeline idle for 75 % of its time" in text for text in few.warnings)
    enough = ask(gpt2, accumulation_steps=4, pipeline_parallel=4)
    assert not any("idle" in text for text in enough.warnings)
    assert enough.samples_per_s > few.samples_per_s


def test_eight_devices_hold_a_model_that_one_cannot(gpt2_xl):
    one, eight = (ask(gpt2_xl, on=f"{n}xA100-SXM4-40GB", batch_size=2, tensor_parallel=n) for n in (1, 8))
    assert eight.peak_memory_bytes < one.peak_memory_bytes / 4
    states = 1_557_611_200 * 16 / 8  # fp32 weights, gradients and two moments
    assert eight.peak_memory_bytes > states


@pytest.mark.parametrize("axis", ["tensor_parallel", "pipeline_parallel"])
def test_memory_falls_with_every_further_device_of_a_replica(gpt2, axis):
    found = [ask(gpt2, f"{n}xA100-SXM4-40GB", 8, accumulation_steps=4, **{axis: n}) for n in (1, 2, 4)]
    peaks = [each.peak_memory_bytes for each in found]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tensor_parallel": 0}, "tensor_parallel cannot be 0: give a whole number of at least 1"),
        ({"pipeline_parallel": 1.5}, "pipeline_parallel cannot be 1.5"),
        (
            {"tensor_parallel": 3},
            "tensor_parallel 3 x pipeline_parallel 1 = 3 devices per replica, which does not divide 8",
        ),
        ({"on": "T4", "tensor_parallel": 2}, "which does not divide 1"),
        ({"on": "4x2xT4@50Gb/s", "tensor_parallel": 4}, "tensor_parallel 4 needs its groups inside a node"),
        ({"tensor_parallel": 2, "strategy": "fsdp"}, "go with the strategy 'ddp' only, not with 'fsdp'"),
        ({"model": "resnet50", "tensor_parallel": 2}, "apply to transformers, but resnet50 has no attention"),
        ({"on": "2x8xT4@50Gb/s", "pipeline_parallel": 16}, "gpt2 has 12 blocks"),
        ({"batch_size": 3, "tensor_parallel": 2}, "leaves some of 4 replicas without a sample: choose at least 4"),
    ],
)
def test_what_cannot_be_is_said(gpt2, options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ask(**{"model": gpt2, **options})


def test_uneven_replicas_wait_for_the_fullest(gpt2):
    found = ask(gpt2, batch_size=9, tensor_parallel=2)
    assert any("does not divide evenly by 4 replicas: the fullest has 3 samples" in text for text in found.warnings)


def test_the_command_line_takes_both(capsys):
    words = ["forecast", "gpt2", "--on", "8xA100-SXM4-40GB", "--batch", "16", "--accumulate", "4"]
    assert run([*words, "--tensor-parallel", "2", "--pipeline-parallel", "4"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "tensor 2 x pipeline 4 per replica" in out
    assert "not yet checked against measurements" in out
