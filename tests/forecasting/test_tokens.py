"""Tokens, utilisation and device hours of a language model, from numbers that can be checked by hand."""

from dataclasses import replace

import pytest

import traincast as tc
from traincast.errors import InputError


@pytest.fixture(scope="module")
def answer():
    return tc.forecast("gpt2", "4xA100-SXM4-80GB", 32, n_tokens=1_000_000, precision="bf16", optimizer="adamw")


def test_tokens_are_samples_times_their_length(answer):
    assert answer.tokens_per_s == pytest.approx(1024 * answer.samples_per_s)
    assert answer.tokens_per_s_per_device == pytest.approx(answer.tokens_per_s / 4)
    low, high = answer.interval("tokens_per_s")
    assert low < answer.tokens_per_s < high


def test_device_hours_are_those_of_all_devices(answer):
    assert answer.device_hours == pytest.approx(4 * answer.total_s / 3600)
    assert answer.to_dict()["device_hours"] == answer.device_hours
    assert replace(answer, question=replace(answer.question, n_samples=None)).device_hours is None


def test_mfu_is_six_flop_a_parameter_and_token_and_the_attention(answer):
    """6 N + 12 L h s flop a token (PaLM's convention), N with the tied head and without position embeddings."""
    n_parameters, n_layers, width, length = 124_439_808 - 1024 * 768, 12, 768, 1024
    flop_per_s = answer.tokens_per_s_per_device * (6 * n_parameters + 12 * n_layers * width * length)
    assert answer.mfu == pytest.approx(flop_per_s / 312e12, rel=0.01)
    assert answer.hfu == answer.mfu == answer.flop_utilisation


def test_recomputation_counts_for_hfu_and_not_for_mfu():
    plain, again = (
        tc.forecast("gpt2", "A100-SXM4-80GB", 8, precision="bf16", recompute=how) for how in ("none", "reentrant")
    )
    assert again.mfu * again.step_s == pytest.approx(plain.mfu * plain.step_s)
    assert again.hfu > 1.2 * again.mfu
    assert again.step_s > 1.1 * plain.step_s
    assert again.peak_memory_bytes < 0.8 * plain.peak_memory_bytes


def test_a_model_that_reads_no_tokens_has_none():
    answer = tc.forecast("resnet18", "T4", 8)
    assert answer.tokens_per_s is None
    with pytest.raises(InputError, match="tokens_per_s is not known: it needs a model that reads tokens"):
        answer.interval("tokens_per_s")
