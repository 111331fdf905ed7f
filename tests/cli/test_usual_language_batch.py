"""A language model by name needs no batch: as many sequences as fit each device."""

import pytest

import traincast as tc
from traincast.api.forecasts import forecasts
from traincast.errors import InputError


def test_sixteen_thousand_tokens_a_device_where_they_fit():
    (found,) = forecasts("smollm-135m", ["8xH100-SXM5-80GB"], seqlen=2048)
    assert found.batch_size == 8 * 8
    assert found.fits
    assert any("64 sequences of 2,048 tokens per update, 8 on each device" in words for words in found.warnings)


def test_fewer_where_they_do_not():
    (found,) = forecasts("llama-3.2-1b", ["RTX3090"], seqlen=4096)
    assert found.batch_size < 4
    assert found.fits or found.batch_size == 1


def test_each_place_has_its_own():
    one, four = forecasts("pythia-160m", ["A100-SXM4-80GB", "4xA100-SXM4-80GB"])
    assert four.batch_size == 4 * one.batch_size


def test_bf16_and_adamw_are_where_a_published_model_starts():
    (found,) = forecasts("pythia-160m", ["A100-SXM4-80GB"])
    assert found.question.settings.precision == "bf16"
    assert found.question.settings.optimizer == "adamw"
    assert tc.forecast("gpt2", on="T4", batch_size=1).question.settings.optimizer == "sgd"


def test_other_models_have_no_usual_batch():
    with pytest.raises(InputError, match="resnet50 is no language model and has no usual batch"):
        forecasts("resnet50", ["T4"])
