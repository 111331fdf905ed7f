"""`traincast explain`: what a predicted step is made of, its roofline, and what would help."""

import json

import pytest

from traincast.__main__ import run
from traincast.api.explaining import explain

MODEL = ["resnet18", "--on", "V100-SXM2-16GB", "--batch", "32"]


def told(capsys, *arguments):
    assert run(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_ops_modules_and_changes_are_told(capsys):
    out = told(capsys, *MODEL)
    for title in ("A step by what bounds it", "Longest ops", "Longest modules", "What would help, each alone"):
        assert f"\n{title}\n" in out
    assert "convolution_backward" in out
    assert "amp-fp16 and channels-last" in out
    assert "tf32 (V100-SXM2-16GB has no tf32 units)" in out
    assert "checkpointing" in out


def test_json_has_every_change_with_its_interval(capsys):
    data = json.loads(told(capsys, *MODEL, "--json"))
    for one in data["what_ifs"]:
        low, high = one["speedup_interval"]
        assert low <= one["speedup"] <= high
    assert data["roofline"]["ceilings"][0]["flop_per_s"] == pytest.approx(15.7e12)
    assert sum(data["bound_s"].values()) == pytest.approx(data["step"]["predicted_s"])


def test_a_page_has_the_roofline(capsys, tmp_path):
    page = tmp_path / "why.html"
    told(capsys, *MODEL, "--precision", "amp-fp16", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "Roofline of resnet18 on V100-SXM2-16GB in amp-fp16, batch 32" in text
    assert "fp32 without matrix units" in text


def test_a_slow_loader_is_what_to_change(capsys):
    out = told(capsys, *MODEL, "--input-samples-per-s", "50")
    assert "Predicted to be bound by the input" in out
    data = json.loads(told(capsys, *MODEL, "--input-samples-per-s", "50", "--json"))
    assert data["what_ifs"][0]["name"] == "more loader workers"


def test_beside_a_measured_step_the_changes_are_told_too(capsys, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("model,batch_size,optimizer,step_ms\nresnet18,32,sgd,40\n")
    out = told(capsys, *MODEL, "--measured", rows)
    assert "What would help" in out
    assert "Longest ops" not in out


def test_passes_strategy_and_ppp_are_those_of_the_step_that_is_explained():
    plain = explain("resnet18", "4xT4", 64).forecast
    sharded = explain("resnet18", "4xT4", 64, strategy="fsdp", accumulation_steps=2).forecast
    assert (sharded.question.strategy.name, sharded.question.micro_batch_size) == ("fsdp", 8)
    assert sharded.communication_s > plain.communication_s
    half, whole = (explain("resnet18", "T4", 64, method="paleo", ppp=ppp).forecast for ppp in (0.5, 1.0))
    assert half.step_s > whole.step_s
