"""A training step becomes the forward pass of the trained model: what a capture in that mode records."""

import numpy as np
import pytest
import torch
from torch import nn

import traincast as tc
from traincast.frontend.models.training_step import build_for_training
from traincast.trace.check import check_step, check_trace
from traincast.trace.forward_only import forward_only
from traincast.trace.graph import StorageKind


def ops_of(trace):
    graph = trace.graph
    shapes = [[graph.shape_of(tensor, 8) for tensor in row] for row in graph.op_inputs.rows()]
    return [(graph.name_of(op), str(graph.attributes_of(op)), shapes[op]) for op in range(graph.n_ops)]


@pytest.mark.parametrize("name", ["resnet18", "bert-base", "lstm_lm", "googlenet", "efficientnet_b0", "mobilenet_v2"])
def test_it_runs_the_ops_that_the_model_in_evaluation_mode_runs(name):
    with torch.device("meta"):
        module, example, _ = build_for_training(name)
    captured = tc.capture(module, example, mode="inference")

    derived = forward_only(tc.load_model(name))

    check_trace(derived, where=name)
    check_step(derived.graph, where=name)
    assert ops_of(derived) == ops_of(captured)
    assert derived.n_parameters == captured.n_parameters
    peaks = [tc.estimate_memory(trace, 8).peak_bytes for trace in (derived, captured)]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.05)


def test_forward_flop_stay_and_the_rest_goes():
    trained = tc.load_model("vgg16")

    predicting = forward_only(trained)

    assert predicting.forward_flop(4) == trained.forward_flop(4)
    assert predicting.backward_flop(4) == 0
    kinds = set(predicting.graph.storage_kind.tolist())
    assert kinds <= {StorageKind.WEIGHT, StorageKind.INPUT, StorageKind.BUFFER, StorageKind.TEMPORARY}


def test_two_dropouts_in_a_row_hand_on_what_the_first_would_have_read():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8, 2))
    trace = forward_only(tc.capture(model, torch.zeros(2, 8)))

    check_step(trace.graph, where="the model")
    linear, last = (op for op in range(trace.graph.n_ops) if trace.graph.name_of(op) == "aten.addmm")
    made, read = trace.graph.op_outputs.rows()[linear][0], trace.graph.op_inputs.rows()[last]
    assert trace.graph.tensor_storage[made] in trace.graph.tensor_storage[read]


def test_what_was_captured_as_inference_stays_as_it_is():
    trace = tc.capture(nn.Linear(8, 2), torch.zeros(2, 8), mode="inference")
    assert forward_only(trace) is trace


def test_activations_are_freed_as_soon_as_nobody_reads_them():
    model = nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(10)))
    trace = forward_only(tc.capture(model, torch.zeros(2, 1000)))
    graph = trace.graph
    sizes = graph.storage_bytes(np.array([50]))[0]
    alive = [
        int(sizes[(graph.storage_alloc <= op) & (graph.storage_free > op) & (graph.storage_kind == 6)].sum())
        for op in range(graph.n_ops)
    ]
    assert max(alive) == 2 * 50 * 1000 * 4  # what a layer reads and what it writes
