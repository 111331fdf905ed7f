"""Files of collectives, memory and models by name: what their cells mean, and why some rows cannot be asked about."""

import json

import numpy as np
import pytest

import traincast as tc
from lab.accuracy.modern.collective_rows import collective_row
from lab.accuracy.modern.collective_sight import ask_collective, of_collectives
from lab.accuracy.modern.memory_rows import litgpt_row, megatron_row, one_vote_each
from lab.accuracy.modern.memory_sight import of_memory, of_mlps
from lab.accuracy.modern.mlp_rows import mlp_row
from lab.accuracy.modern.model_rows import example_row, mlperf_row
from lab.accuracy.modern.model_sight import of_models
from traincast.memory.overhead import overhead_of

SMALL = {
    "layers": 2, "hidden": 64, "heads": 2, "kv_heads": 2, "ffn": 256, "vocab": "tokenizer", "gated_mlp": False,
    "norm": "LayerNorm", "pos": "learned_absolute", "tied_embeddings": True, "experts": "", "seqlen": 16,
}  # fmt: skip


def collective(**changes):
    usual = {
        "collective": "all_reduce", "device": "H100-SXM5-80GB", "n_gpus": "8", "n_nodes": "", "interconnect": "NVLink",
        "bytes": "1073741824", "algo": "", "time_us": "4000", "note": "",
    }  # fmt: skip
    return collective_row(usual | changes, "collectives_made_up.csv.gz")


@pytest.fixture
def megatron(line):
    def made(arguments=None, settings=None, **changes):
        usual = {
            "model": "gpt/one", "model_settings": json.dumps(SMALL | (settings or {})), "seqlen": "16",
            "args": json.dumps(arguments or {}), "sharding": "tp=1;pp=1;cp=1;ep=1", "peak_memory_GB": "1",
            "global_batch": "32", "micro_batch": "4", "grad_accum": "1", "framework": "Megatron-LM core dev",
            "optimizer": "adam", "attention": "TE auto", "grade": "B",
        }  # fmt: skip
        return megatron_row(line(**usual | changes))

    return made


def test_a_gigabyte_through_a_ring_of_eight_takes_seven_quarters_of_its_time_on_the_printed_link():
    seconds, nominal = ask_collective(collective())

    assert nominal == pytest.approx(7 / 4 * 2**30 / 450e9)
    assert seconds > nominal


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "all_to_all"])
def test_collectives_that_turn_once_carry_half_of_an_all_reduce(name):
    seconds, nominal = ask_collective(collective(collective=name))

    assert nominal == pytest.approx(ask_collective(collective())[1] / 2)
    assert 0 < seconds < 0.8 * ask_collective(collective())[0]  # a copy of one's own part is on top


def test_collectives_are_sets_of_an_operation_a_gpu_and_small_or_large_vectors():
    rows = [
        collective(),
        collective(bytes="32768"),
        collective(note="2 concurrent groups of 4", n_gpus="4"),
        collective(collective="collective_permute", n_gpus=""),
        collective(n_nodes="4", interconnect="unknown", device="unknown (4 nodes x 8)"),
    ]

    sets, count = of_collectives("collectives_made_up.csv.gz", rows)

    assert {each.name.rpartition(", ")[2]: len(each.observed) for each in sets} == {
        "1 MiB and more": 2,
        "less than 1 MiB": 1,
    }
    assert all(each.log_sd is None and each.quantity == "collective time" for each in sets)
    assert count.not_asked == {"who sends to whom is not told": 1, "GPU and fabric not told": 1}
    assert rows[2].n_groups == 2


def test_megatron_pads_the_words_of_its_tokenizer_by_tensor_parallelism(megatron):
    split = megatron({"--tensor-model-parallel-size": 2}, sharding="tp=2;pp=1;cp=1;ep=1")

    assert megatron().row.architecture.vocab == 50304
    assert split.row.architecture.vocab == 50432
    assert megatron(settings={"vocab": 1000}).row.architecture.vocab == 1000


def test_linear_layers_of_megatron_have_biases_unless_told_otherwise(megatron):
    assert megatron().row.architecture.has_bias
    assert not megatron({"--disable-bias-linear": True}).row.architecture.has_bias


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"sharding": "tp=1;pp=1;cp=1;ep=1;distopt"}, ""),
        ({"sharding": "tp=2;pp=1;cp=1;ep=1;distopt"}, "optimizer sharded beside tensor or pipeline parallel"),
        ({"sharding": "tp=2;pp=1;cp=1;ep=1;sp"}, "sequence parallel"),
        ({"sharding": "tp=1;pp=4;cp=1;ep=1;vp_layers=1"}, "interleaved stages"),
        ({"settings": {"experts": 8}}, "mixture of experts"),
        ({"arguments": {"--perform-rl-step": True}}, "reinforcement learning"),
        ({"n_gpus": ""}, "number of GPUs not told"),
        ({"model": "mimo/one"}, "no decoder or encoder of attention alone"),
    ],
)
def test_what_no_question_can_say_of_a_run_of_megatron_is_told(megatron, changes, why):
    assert megatron(**changes).reason == why


def test_a_question_is_one_vote_with_the_newest_version_of_every_test(megatron):
    rows = [
        megatron(peak_memory_GB="9", framework="Megatron-LM core lts"),
        megatron(peak_memory_GB="1"),
        megatron(model="gpt/two", peak_memory_GB="3"),
        megatron(model="gpt/two", global_batch="64", grad_accum="2"),
    ]

    first, second = one_vote_each(rows)

    assert first.peak_bytes == 2e9
    assert second.row.accumulation_steps == 2


def test_memory_of_a_run_is_asked_without_the_context_that_pytorch_does_not_count(megatron, tmp_path):
    row = megatron()
    trace = tc.load_model("mnist_cnn")
    trace.save(tmp_path / f"{row.trace}.trace")
    answer = tc.forecast(trace, "8xA100-SXM4-80GB", 32, precision="amp-bf16", optimizer="adamw")

    question = answer.question
    context = overhead_of(question.graph, question.micro_batch_size, device=question.device).context_bytes

    (scored,), count = of_memory("megatron_golden.csv.gz", [row, row, megatron(model="mimo/one")], tmp_path)

    assert scored.name == "megatron_golden: decoders, whole"
    assert scored.predicted.tolist() == [answer.peak_memory_bytes - context]
    assert scored.baseline[0] == 16 * row.row.architecture.n_parameters
    assert (count.n_rows, count.not_asked) == (3, {"no decoder or encoder of attention alone": 1})


def test_rows_whose_trace_was_not_captured_are_counted(megatron, tmp_path):
    scored, count = of_memory("megatron_golden.csv.gz", [megatron(), megatron()], tmp_path)

    assert (scored, count.not_asked) == ([], {"trace not captured": 2})


def test_lora_of_litgpt_ties_no_embeddings_and_shares_a_batch_of_all_gpus(line):
    cells = {
        "model_settings": json.dumps(SMALL | {"vocab": 100}), "seqlen": "16", "n_gpus": "2", "micro_batch": "4",
        "finetuning": "lora r=8 on q,v", "precision": "bf16-true", "activation_checkpointing": "full (FSDP)",
        "sharding": "fsdp", "peak_memory_GB": "5", "attention": "sdpa",
    }  # fmt: skip
    row = litgpt_row(line(**cells))

    assert (row.reason, row.row.global_batch, row.row.recompute) == ("", 8, "full")
    assert not row.row.architecture.is_tied
    assert litgpt_row(line(**cells | {"precision": "bf16-true + bnb.nf4"})).reason == "4-bit weights"
    assert litgpt_row(line(**cells | {"peak_memory_GB": ""})).reason == "no peak: out of memory, or not supported"


def test_a_perceptron_is_its_layers_and_is_asked_for_all_that_the_device_reports(tmp_path):
    layers = "[('linear', 10, 1010), ('ReLU', 10, 0), ('linear', 2, 22)]"
    settings = {"input": "100", "batch": "32", "dropout_p": "0.3", "layers_activations_params": layers}
    row = mlp_row({"model_settings": json.dumps(settings), "n_parameters": "1032", "peak_memory_GB": "1.5"})
    trace = tc.load_model("mnist_cnn")
    trace.save(tmp_path / f"{row.trace}.trace")

    (scored,), count = of_mlps([row], tmp_path)

    assert row.layers == (("linear", 10), ("ReLU", 10), ("linear", 2))
    expected = tc.estimate_memory(trace, 32, on="A100-SXM4-40GB", precision="fp32", optimizer="adam").total_bytes
    assert scored.predicted.tolist() == [expected]
    assert scored.baseline[0] == 1.55e9 + 16 * 1032
    assert count.not_asked == {}
    assert of_mlps([row], tmp_path / "none")[1].not_asked == {"trace not captured": 1}


@pytest.mark.parametrize(
    ("changes", "batch", "passes"),
    [
        ({"precision": "tf32", "micro_batch": "128"}, 8192, 64),
        ({"precision": "amp-fp16", "micro_batch": "256"}, 8192, 32),
        ({"precision": "tf32", "micro_batch": "8192", "note": ""}, 8192, 64),  # of all passes together
    ],
)
def test_a_batch_of_nvidias_examples_is_of_one_pass_where_the_accumulated_one_stands_beside_it(
    line, changes, batch, passes
):
    usual = {
        "model": "PyTorch/LanguageModeling/BERT", "seqlen": "128", "grad_accum": "64 and 32", "n_gpus": "1",
        "samples_per_s_per_gpu": "1024", "note": "Accumulated Batch size / GPU",
    }  # fmt: skip
    row = example_row(line() | usual | changes)

    assert (row.reason, row.batch_size, row.accumulation_steps, row.step_s) == ("", batch, passes, 8.0)


def test_fast_ports_of_a_node_join_those_of_mlperf(line):
    usual = {
        "model": "resnet",
        "n_nodes": "2",
        "n_gpus": "16",
        "global_batch": "3200",
        "step_ms": "30",
        "grad_accum": "1",
    }
    told = "NVLINK 900 GB/s | Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s"
    row = mlperf_row(line(**usual, interconnect=told))

    assert row.place == "2x8xA100-SXM4-80GB@3200Gb/s"
    assert row.assumed == ("momentum for lars",)
    silent = mlperf_row(line(**usual, interconnect="NVLINK | Ethernet, Infiniband"))
    assert silent.assumed == ("momentum for lars", "1600Gb/s between nodes")
    assert mlperf_row(line(**usual | {"model": "rnnt"})).reason == "layers of the model not told: rnnt"


def test_models_by_name_are_asked_with_their_interval_and_beside_the_roofline(line, tmp_path):
    tc.load_model("mnist_cnn").save(tmp_path / "resnet50.trace")
    cells = {"model": "resnet", "n_nodes": "1", "global_batch": "3200", "step_ms": "30", "grad_accum": "1"}
    rows = [mlperf_row(line(**cells)), mlperf_row(line(**cells | {"model": "bert"}))]

    (scored,), count = of_models("mlperf.csv.gz", rows, tmp_path)

    assert scored.name == "mlperf: resnet, A100-SXM4-80GB amp-fp16, one node"
    assert scored.baseline[0] < scored.predicted[0]
    assert np.all(scored.log_sd > 0)
    assert (count.n_rows, sum(count.not_asked.values())) == (2, 1)
