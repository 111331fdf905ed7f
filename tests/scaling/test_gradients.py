"""When gradients are ready and which are reduced together."""

import numpy as np
import pytest
import torch
from torch.distributed import _compute_bucket_assignment_by_size

import traincast as tc
from traincast.scaling.gradients import BUCKET_BYTES, FIRST_BUCKET_BYTES, Gradients, buckets_of, gradients_of
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

MODELS = ("resnet50", "bert-base", "cifar_resnet18", "gpt2", "vgg16", "lstm_lm")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_every_trained_parameter_has_one_gradient_of_its_own_size(model, precision):
    trace = tc.load_model(model)
    found = gradients_of(lower(trace, settings=Settings(precision, "adam")))
    assert found.total_bytes == 4 * trace.n_trainable_parameters


def test_gradients_of_a_pure_16_bit_model_have_two_bytes():
    trace = tc.load_model("gpt2")
    assert gradients_of(lower(trace, settings=Settings("bf16", "adam"))).total_bytes == 2 * trace.n_trainable_parameters


def test_the_last_layer_is_ready_first_and_the_first_one_last():
    graph = lower(tc.load_model("vgg16"))
    found = gradients_of(graph)
    assert (np.diff(found.ready_op) >= 0).all()
    assert (graph.op_phase[found.ready_op] == Phase.BACKWARD).all()
    classifier = {4 * 4096 * 1000, 4 * 1000}
    assert set(found.bytes[:2].tolist()) == classifier
    assert 4 * 64 * 3 * 9 in found.bytes[-2:].tolist()


def test_frozen_layers_and_inference_have_no_gradients():
    layer, frozen = torch.nn.Linear(8, 8, device="meta"), torch.nn.Linear(8, 8, device="meta").requires_grad_(False)
    trace = tc.capture(torch.nn.Sequential(frozen, layer), lambda batch: torch.zeros(batch, 8))
    assert gradients_of(lower(trace)).total_bytes == 4 * (64 + 8)
    idle = tc.capture(torch.nn.Sequential(layer), lambda batch: torch.zeros(batch, 8), mode="inference")
    assert gradients_of(lower(idle)).total_bytes == 0
    assert len(buckets_of(gradients_of(lower(idle))).bytes) == 0


@pytest.mark.parametrize("model", MODELS)
def test_buckets_are_those_of_distributed_data_parallel(model):
    """PyTorch's own function, given the gradients in the order of their readiness."""
    found = gradients_of(lower(tc.load_model(model)))
    tensors = [torch.empty(int(n_bytes) // 4, device="meta") for n_bytes in found.bytes]
    theirs, _ = _compute_bucket_assignment_by_size(tensors, [FIRST_BUCKET_BYTES, BUCKET_BYTES])
    ours = buckets_of(found)
    # Torch lists the buckets by their first tensor.
    assert sorted(ours.bytes.tolist()) == sorted(float(found.bytes[bucket].sum()) for bucket in theirs)
    assert ours.bytes.sum() == found.total_bytes


def test_a_bucket_is_closed_by_the_gradient_that_fills_it():
    made = Gradients(np.array([1.0, 2.0, 30.0, 1.0, 9.0, 1.0]), np.array([3, 4, 5, 6, 7, 9]))
    buckets = buckets_of(made, first_bytes=3.0, bucket_bytes=10.0)
    assert buckets.bytes.tolist() == [3.0, 30.0, 10.0, 1.0]
    assert buckets.ready_op.tolist() == [4, 5, 7, 9]
