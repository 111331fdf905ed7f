"""BertAdam, the optimizer of NVIDIA's BERT in 32 bits: parameter by parameter, and the device waits for the host."""

import numpy as np
import pytest
import torch

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.refit.bert_update import bert_update
from traincast.kernels.refit.model_rows import lambda_steps
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

DISPATCH_S = find_host("torch-eager").optimizer_dispatch_s
HEADER = (
    "gpu,num_gpus,precision,precision_tag,tf32_allowed,model,batch_size,throughput,unit,suite,pytorch,system,runs,"
    "spread,flag,overcount"
)


def graph_of(*layers):
    trace = tc.capture(torch.nn.Sequential(*layers), torch.zeros(2, 1000), optimizer="adam")
    return lower(trace, settings=Settings("fp32", "adam"))


def test_each_parameter_takes_ops_of_its_own_and_small_ones_wait_for_the_host():
    graph = graph_of(torch.nn.Linear(1000, 1000), torch.nn.Linear(1000, 1000))  # two weights and two biases
    update = bert_update(graph, "A100-SXM4-80GB", clips_each=False)

    assert update.count.tolist() == [2 * 11.0, 2 * 11.0]  # biases, then weights
    assert (update.count @ update.bytes) == pytest.approx(2 * 1_001_000 * 4 * 28)
    assert update.n_dispatched == 4 * 11
    device_s = 2 * 1_001_000 * 4 * 28 / (0.85 * find_device("A100-SXM4-80GB").memory_bytes_per_s)
    assert update.waiting_s == pytest.approx(4 * 11 * DISPATCH_S - device_s)


def test_large_parameters_keep_the_device_busy_and_clipping_each_adds_ops():
    large = graph_of(torch.nn.Linear(1000, 40_000))
    small = graph_of(torch.nn.Linear(1000, 10))

    assert bert_update(large, "T4", clips_each=False).waiting_s == 0.0
    plain, clipped = (bert_update(small, "T4", clips_each=each) for each in (False, True))
    assert (plain.n_dispatched, clipped.n_dispatched) == (22, 40)
    assert clipped.waiting_s > plain.waiting_s > 0.0


@pytest.mark.parametrize(
    ("precision", "model", "suite", "update"),
    [
        ("fp32", "bert_base_squad", "v0", "each parameter, clipped"),
        ("fp32", "bert_large_squad", "v1", "each parameter"),
        ("fp16", "bert_base_squad", "v0", "foreach"),
        ("fp32", "resnet50", "v0", "foreach"),
    ],
)
def test_only_bert_in_32_bits_has_it_and_only_the_older_suite_clips_each(tmp_path, precision, model, suite, update):
    (tmp_path / "e2e").mkdir()
    row = f"T4,1,{precision},,0,{model},8,100.0,sequences/s,{suite},1.7,T4,1,,,"
    (tmp_path / "e2e" / "lambda.csv").write_text(f"{HEADER}\n{row}\n")

    (step,) = lambda_steps(tmp_path)

    assert step.update == update
    assert np.isfinite(step.observed_s)
