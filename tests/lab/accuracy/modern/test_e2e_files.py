"""Whole models on newer GPUs, on tables that are made up here, and how a measured step is asked about."""

import csv
import gzip
import shutil

import pytest

import traincast as tc
from lab.accuracy.modern.asking import ask
from lab.accuracy.modern.cases import newer_rows, older_rows
from lab.accuracy.modern.scored_rows import of_examples
from traincast.api.models import load_model
from traincast.kernels.refit.model_rows import lambda_steps, model_block
from traincast.kernels.refit.modern.e2e_files import example_steps, image_rows
from traincast.kernels.refit.modern.language_files import row_of


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def examples(tmp_path):
    """NVIDIA's examples: one GPU and two, one flagged, one model without a trace."""
    usual = {
        "gpu": "RTX-4090", "num_gpus": "1", "precision": "fp16", "tf32_allowed": "0", "model": "resnet50",
        "batch_size": "100", "throughput": "1000", "suite": "v1", "pytorch": "1.13", "system": "made up", "runs": "1",
        "spread": "", "flag": "", "overcount": "",
    }  # fmt: skip
    flagged = {"model": "bert_base_squad", "flag": "bert_steps_overcounted", "overcount": "2"}
    rows = [usual, usual | {"num_gpus": "2"}, usual | flagged, usual | {"model": "ncf"}]
    rows.append(usual | {"precision": "fp32", "tf32_allowed": "1"})
    rows.append(usual | {"gpu": "H100-PCIe-80GB", "model": "bert_large_squad"})
    write(tmp_path / "e2e" / "lambda_newer_gpus.csv", rows)
    return tmp_path


def test_rows_of_the_newer_table_are_told_from_those_of_the_first_whatever_they_name(examples):
    shutil.copy(examples / "e2e" / "lambda_newer_gpus.csv", examples / "e2e" / "lambda.csv")
    found = [step for step in (*lambda_steps(examples), *example_steps(examples)) if step.tags["family"] == "resnet50"]
    block = model_block("nvidia examples", [step for step in found if step.tags["precision"] == "amp-fp16"], examples)

    assert block.n_rows == 2
    assert older_rows(block).tags["file"].tolist() == ["lambda.csv"]
    assert newer_rows(block).tags["file"].tolist() == ["lambda_newer_gpus.csv"]


def test_image_rows_are_sets_by_layout_compiler_and_release(tmp_path):
    usual = {
        "gpu": "RTX-4090", "model": "vit_tiny", "family": "vit", "layout": "nchw", "batch_size": "256",
        "img_size": "224", "samples_per_s": "1000", "step_ms": "256", "precision": "amp-fp16", "torch_compile": "0",
        "pytorch": "2.4",
    }  # fmt: skip
    write(tmp_path / "e2e" / "timm_infer_rtx4090.csv.gz", [usual, usual | {"torch_compile": "1", "pytorch": "2.9"}])

    eager, compiled = image_rows(tmp_path)

    assert eager.step.trace == "timm-inference--vit_tiny--224"
    assert eager.step.observed_s == pytest.approx(0.256)
    assert (eager.set_name, compiled.set_name) == ("eager nchw, PyTorch 2.4", "compiled nchw, PyTorch 2.9")


def test_examples_are_those_of_one_gpu_with_overcounted_steps_put_right(examples):
    steps = list(example_steps(examples))

    assert [step.tags["family"] for step in steps] == ["resnet50", "bert_base_squad", "resnet50", "bert_large_squad"]
    assert [step.observed_s for step in steps] == pytest.approx([0.1, 0.2, 0.1, 0.1])
    assert [step.settings.precision for step in steps] == ["amp-fp16", "bf16", "tf32", "bf16"]
    assert [step.is_apex for step in steps] == [False, True, False, True]


def test_examples_without_a_trace_are_counted_and_the_others_scored(examples, tmp_path):
    sets, count = of_examples(examples, tmp_path)

    assert [each.name for each in sets] == ["nvidia examples: RTX-4090, amp-fp16", "nvidia examples: RTX-4090, tf32"]
    assert (count.n_rows, count.not_asked) == (4, {"trace not captured": 2})


def test_a_step_is_asked_as_a_user_would_ask(line):
    trace = load_model("gpt2")
    row = row_of(line(n_gpus="4", global_batch="32", micro_batch="4"), "made_up.csv")

    answer = ask(row, trace)

    usual = {"precision": "bf16", "optimizer": "adamw", "accumulation_steps": 2, "strategy": "fsdp"}
    assert answer.step_s == tc.forecast(trace, "4xA100-SXM4-80GB", 32, **usual).step_s
    assert 0 < answer.roofline_s < answer.step_s
    forward = ask(row_of(line(n_gpus="1", sharding="none", note="forward (infer)"), "made_up.csv"), trace)
    whole = ask(row_of(line(n_gpus="1", sharding="none"), "made_up.csv"), trace)
    assert forward.step_s < whole.step_s / 2


def test_a_question_that_is_refused_says_so_and_stops_no_other(line):
    row = row_of(line(n_gpus="32", sharding="tp=16;pp=1", interconnect="800 Gb/s per node"), "made_up.csv")

    assert ask(row, load_model("gpt2")).refused.startswith("refused: tensor_parallel 16 needs its groups inside a node")
