"""Run files of language models, on lines that are made up here."""

import json

import pytest

from lab.accuracy.modern.asking import NO_TRACE, ask_all
from traincast.kernels.refit.modern.architecture import architecture_of
from traincast.kernels.refit.modern.language_files import row_of


def test_parameters_of_llama_3_8b_are_what_its_authors_count(llama):
    found = architecture_of(llama, 8192)

    assert found.n_parameters == pytest.approx(8_030_261_248, rel=1e-4)
    n_multiplied = 8_030_261_248 - 128256 * 4096
    assert found.flop_per_token == pytest.approx(6 * n_multiplied + 12 * 32 * 4096 * 8192, rel=1e-4)


def test_layer_norm_means_biases_unless_a_file_says_that_there_are_none():
    gpt = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 256, "vocab": 100, "norm": "layernorm", "pos": "learned"}

    assert architecture_of(gpt, 16).has_bias
    assert not architecture_of(gpt | {"no_bias": True}, 16).has_bias
    assert architecture_of(gpt | {"heads": ""}, 16) is None


def test_passes_follow_from_the_micro_batch_where_they_are_not_told(line):
    assert row_of(line(), "made_up.csv").accumulation_steps == 4
    assert row_of(line(grad_accum="7"), "made_up.csv").accumulation_steps == 7
    split = row_of(line(sharding="tp=2;pp=2;dp=2"), "made_up.csv")
    assert split.accumulation_steps == 16
    assert (split.sharding.tensor_parallel, split.sharding.pipeline_parallel) == (2, 2)
    assert split.sharding.strategy == "ddp"


@pytest.mark.parametrize(
    ("sharding", "strategy"),
    [("fsdp2=8", "fsdp"), ("zero2", "zero2"), ("tp=1;zero1 over 8", "zero1"), ("none", "ddp"), ("ddp", "ddp")],
)
def test_sharding_is_asked_by_the_name_that_the_code_has_for_it(sharding, strategy, line):
    assert row_of(line(sharding=sharding), "made_up.csv").sharding.strategy == strategy


@pytest.mark.parametrize(
    ("interconnect", "place"),
    [
        ("NVLink; 8x200Gb/s RoCE (1600 Gbps node-node)", "4x8xA100-SXM4-80GB@1600Gb/s"),
        ("NVLink; 4x100Gb RoCE per node", "4x8xA100-SXM4-80GB@400Gb/s"),
        ("NVLink3 8-GPU node; 800 Gb/s per node", "4x8xA100-SXM4-80GB@800Gb/s"),
        ("NVLink3; 4x Omni-Path 100 Gb/s per node (Jean Zay)", "4x8xA100-SXM4-80GB@400Gb/s"),
    ],
)
def test_nodes_are_joined_as_the_file_says(interconnect, place, line):
    row = row_of(line(n_gpus="32", interconnect=interconnect), "made_up.csv")

    assert row.place == place
    assert not any("between nodes" in each for each in row.assumed)


def test_a_link_that_is_not_told_is_assumed_and_said(line):
    row = row_of(line(n_gpus="32", interconnect="NVLink; node-node not told"), "made_up.csv")

    assert row.assumed == ("1600Gb/s between nodes",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"precision": "fp8-cs"}, "fp8"),
        ({"precision": "nvfp4"}, "nvfp4"),
        ({"precision": "bf16 + int4 (gptq)"}, "int4"),
        ({"finetuning": "lora r=64 all linear"}, "LoRA"),
        ({"sharding": "tp=1;pp=1;cp=2;ep=;vp="}, "context parallel"),
        ({"activation_checkpointing": "selective (op)"}, "recomputation selective"),
        ({"model_settings": json.dumps({"experts": 8})}, "mixture of experts"),
        ({"grade": "C"}, "grade C: ratios or memory only"),
        ({"device": "GB-of-tomorrow"}, "no such device yet: GB-of-tomorrow"),
        ({"step_ms": ""}, "no time of a step"),
        ({}, ""),
    ],
)
def test_what_cannot_be_asked_today_says_why(changes, reason, line):
    assert row_of(line(**changes), "made_up.csv").reason == reason


def test_traces_are_told_apart_by_what_was_run_again_and_by_the_kind_of_attention(line):
    names = {
        row_of(line(**changes), "made_up.csv").trace_name
        for changes in (
            {},
            {"model": "the same under another name"},
            {"activation_checkpointing": "full"},
            {"attention": "eager (fused softmax)"},
            {"seqlen": "4096"},
        )
    }

    assert len(names) == 4


def test_rows_without_a_trace_and_rows_that_cannot_be_asked_say_so(tmp_path, line):
    rows = [row_of(line(), "made_up.csv"), row_of(line(precision="fp8"), "made_up.csv")]

    assert [answer.refused for answer in ask_all(rows, tmp_path)] == [NO_TRACE, "fp8"]


def test_a_forward_pass_alone_is_not_held_against_a_whole_step(line):
    assert row_of(line(note="forward (infer); eager"), "made_up.csv").parts == ("forward_s",)
    assert "optimizer_s" not in row_of(line(note="forward+backward; eager"), "made_up.csv").parts
    assert row_of(line(note="+ AdamW step; eager"), "made_up.csv").parts == ()
