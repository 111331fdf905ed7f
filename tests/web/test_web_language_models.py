"""A language model on the page: its name brings the run that it usually has, in tokens and on GPUs that hold it."""

import pytest
from open_page import PATIENCE_MS, QUICK, answered, card
from playwright.sync_api import expect

import traincast as tc
from traincast.frontend.models.named import named_models
from traincast.web.usual_runs import usual_run


@pytest.mark.parametrize(
    "name", ["smollm-135m", "llama-3.2-1b", "llama-3.1-8b", "qwen2.5-14b", "t5-large", "pythia-12b", "llama-3.1-70b"]
)
def test_the_usual_run_fits_and_is_the_models_own_in_precision_and_optimizer(name):
    run, trace = usual_run(named_models()[name]), tc.load_model(name)
    assert (run.precision, run.optimizer) == (trace.defaults.precision, trace.defaults.optimizer)
    assert run.seqlen == trace.tokens_per_sample
    settings = {"strategy": run.strategy or "ddp", "recompute": run.recompute or "none"}
    assert tc.forecast(trace, run.on, run.batch_size, **settings).fits


def test_twenty_tokens_a_parameter_in_round_numbers():
    assert usual_run(named_models()["llama-3.1-8b"]).n_tokens == 160_000_000_000
    assert usual_run(named_models()["vit-l-16"]) is None


def choose(page, name):
    page.get_by_label("Name").fill(name)
    page.keyboard.press("Tab")
    answered(page, name)


def values(page, *names):
    return [page.locator(f"#choice [name={name}]").input_value() for name in names]


def test_choosing_a_language_model_fills_in_its_run_and_an_image_model_takes_it_back(page, page_address):
    page.goto(page_address)
    answered(page, "resnet50")
    choose(page, "llama-3.1-8b")
    assert values(page, "batch_size", "n_samples", "n_tokens", "seqlen") == ["8", "", "160B", "8192"]
    assert values(page, "precision", "optimizer", "strategy", "recompute") == ["bf16", "adamw", "fsdp", "selective"]
    expect(page.locator("#chosen li")).to_have_text("p5.48xlarge\u00d7")
    expect(page.locator("#forecast")).to_contain_text("The run is 160 B tokens")
    assert "tokens/s" in card(page, "speed").inner_text()
    expect(page.locator("#memory")).to_contain_text("this is one H100-SXM5-80GB alone with the whole batch of 8")
    assert "n_tokens=160B" in page.url
    choose(page, "resnet18")
    assert values(page, "n_samples", "n_tokens", "seqlen", "strategy") == ["1281167", "", "", ""]


def test_places_that_somebody_chose_stay(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    choose(page, "pythia-160m")
    expect(page.locator("#chosen li")).to_have_text("T4\u00d7")


def test_recomputation_adapter_and_length_are_asked_for(page, page_address):
    link = "?model=llama-3.2-1b&on=A10&batch_size=1&n_epochs=1&n_tokens=1B&seqlen=2048&recompute=full&adapter=lora:16"
    page.goto(page_address + link)
    answered(page, "llama-3.2-1b")
    expected = tc.forecast("llama-3.2-1b", "A10", 1, seqlen=2048, recompute="full", adapter="lora:16")
    expect(page.locator("#forecast")).to_contain_text("The run is 1.00 B tokens (488,282 sequences of 2,048)")
    expect(page.locator("#forecast")).to_contain_text("lora:16, recompute full")
    assert f"{expected.tokens_per_s:,.0f} tokens/s" in card(page, "speed").inner_text()
    expect(page.locator("#plan")).to_contain_text("488,282 samples", timeout=PATIENCE_MS)
