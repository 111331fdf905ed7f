"""What a step does by rule: frozen and tied weights, optimizer state, precision, checkpointing, dtype requests."""

import functools
from collections import Counter

import numpy as np
import pytest
import torch
from real_step import Stack
from torch import nn

import traincast as tc
from traincast.frontend.models.training_step import build_for_training
from traincast.memory.timeline import alive_bytes_by_kind, peak_bytes
from traincast.trace.dtypes import BFLOAT16, FLOAT16, FLOAT32
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, Settings


def names_in(graph, phase):
    return Counter(graph.name_of(op) for op in np.flatnonzero(graph.op_phase == phase))


def bytes_of(graph, kind, batch_size=2):
    """Bytes of all storages of a kind, whenever they are alive."""
    return int(graph.storage_bytes(np.array([batch_size]))[0, graph.storage_kind == kind].sum())


def outputs_of(graph, name):
    return [outputs for op, outputs in enumerate(graph.op_outputs.rows()) if graph.name_of(op) == name]


def dtypes_read(graph, name):
    rows = graph.op_inputs.rows()
    ops = [op for op in range(graph.n_ops) if graph.name_of(op) == name]
    return {int(graph.tensor_dtype[tensor]) for op in ops for tensor in rows[op]}


@functools.cache
def frozen_resnet50():
    with torch.device("meta"):
        module, example, loss = build_for_training("resnet50", image_size=64)
    module.requires_grad_(False)
    module.fc.requires_grad_(True)
    return tc.capture(module, example, loss=loss)


def test_with_all_but_the_last_layer_frozen_backward_has_no_convolutions():
    trace = frozen_resnet50()
    assert names_in(trace.graph, Phase.FORWARD)["aten.convolution"] == 53
    assert names_in(trace.graph, Phase.BACKWARD)["aten.convolution_backward"] == 0
    assert trace.backward_flop(4) == 2 * 4 * 2048 * 1000  # the gradient of the last weight


def test_frozen_parameters_have_no_gradient_and_are_counted_apart():
    trace = frozen_resnet50()
    with_gradient = {parameter.name for parameter in trace.parameters if parameter.gradient >= 0}
    assert with_gradient == {"fc.weight", "fc.bias"}
    assert (trace.n_parameters, trace.n_trainable_parameters) == (25_557_032, 2_049_000)


def test_frozen_parameters_have_neither_gradient_memory_nor_optimizer_state():
    lowered = lower(frozen_resnet50(), target="cuda", settings=Settings("fp32", "adam"))
    assert bytes_of(lowered, StorageKind.GRADIENT) == 4 * 2_049_000
    assert bytes_of(lowered, StorageKind.OPTIMIZER_STATE) == 2 * 4 * 2_049_000 + 2 * 4  # and two step counters


@pytest.mark.parametrize(
    ("optimizer", "n_states", "n_counters"),
    [
        ("none", 0, 0),
        ("sgd", 0, 0),
        ("momentum", 1, 0),
        ("nesterov", 1, 0),
        ("adagrad", 1, 1),
        ("adadelta", 2, 1),
        ("rmsprop", 1, 1),
        ("adam", 2, 1),
        ("adamw", 2, 1),
    ],
)
@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_an_optimizer_keeps_so_many_states_and_counters_a_parameter(optimizer, n_states, n_counters, target):
    trace = tc.load_model("resnet18")
    lowered = lower(trace, target=target, settings=Settings("fp32", optimizer))
    expected = 4 * (n_states * trace.n_parameters + n_counters * len(trace.parameters))
    assert bytes_of(lowered, StorageKind.OPTIMIZER_STATE) == expected


def test_an_optimizer_changes_nothing_before_its_own_phase():
    trace = tc.load_model("cifar_resnet20")
    steps = [lower(trace, target="cuda", settings=Settings("fp32", optimizer)) for optimizer in OPTIMIZERS]
    for phase in (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD):
        assert len({frozenset(names_in(step, phase).items()) for step in steps}) == 1


@pytest.mark.parametrize(("precision", "dtype"), [("amp-bf16", BFLOAT16), ("amp-fp16", FLOAT16)])
def test_mixed_precision_halves_convolution_activations_but_keeps_weights_and_statistics(precision, dtype):
    trace = tc.load_model("resnet18")
    full = lower(trace, target="cuda", settings=Settings("fp32", "none"))
    mixed = lower(trace, target="cuda", settings=Settings(precision, "none"))
    assert bytes_of(mixed, StorageKind.WEIGHT) == bytes_of(full, StorageKind.WEIGHT) == 4 * trace.n_parameters
    assert bytes_of(mixed, StorageKind.GRADIENT) == bytes_of(full, StorageKind.GRADIENT) == 4 * trace.n_parameters
    assert {int(mixed.tensor_dtype[output[0]]) for output in outputs_of(mixed, "aten.convolution")} == {dtype}
    for output, mean, deviation in outputs_of(mixed, "aten.batch_norm"):
        assert [int(mixed.tensor_dtype[tensor]) for tensor in (output, mean, deviation)] == [dtype, FLOAT32, FLOAT32]


def test_bf16_halves_weights_gradients_and_activations():
    trace = tc.load_model("vgg11")
    full = lower(trace, target="cuda", settings=Settings("fp32", "adam"))
    half = lower(trace, target="cuda", settings=Settings("bf16", "adam"))
    for kind in (StorageKind.WEIGHT, StorageKind.GRADIENT, StorageKind.INPUT):
        assert 2 * bytes_of(half, kind) == bytes_of(full, kind)
    assert bytes_of(half, StorageKind.ACTIVATION) < 0.7 * bytes_of(full, StorageKind.ACTIVATION)  # indices of pooling
    assert "aten._to_copy" not in half.names


def test_tf32_is_fp32_in_memory():
    trace = tc.load_model("cifar_resnet20")
    steps = [lower(trace, target="cuda", settings=Settings(precision, "sgd")) for precision in ("fp32", "tf32")]
    assert peak_bytes(steps[0], np.array([8])) == peak_bytes(steps[1], np.array([8]))
    assert np.array_equal(steps[0].tensor_dtype, steps[1].tensor_dtype)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("name", ["resnet18", "bert-base", "llama-1b", "lstm_lm"])
def test_no_precision_or_target_adds_or_loses_a_product(name, target, precision):
    trace = tc.load_model(name)
    neutral = Counter(trace.graph.name_of(op) for op in range(trace.graph.n_ops))
    lowered = lower(trace, target=target, settings=Settings(precision, "none"))
    found = Counter(lowered.name_of(op) for op in range(lowered.n_ops))
    for product in ("aten.mm", "aten.addmm", "aten.convolution", "aten.convolution_backward"):
        assert found[product] == neutral[product]


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "bf16"])
def test_tied_weights_are_one_weight_with_one_gradient(precision):
    trace = tc.load_model("gpt2")
    lowered = lower(trace, target="cuda", settings=Settings(precision, "none"))
    item_bytes = 2 if precision == "bf16" else 4
    assert trace.n_parameters == 124_439_808
    assert bytes_of(lowered, StorageKind.WEIGHT) == item_bytes * 124_439_808
    assert bytes_of(lowered, StorageKind.GRADIENT) == item_bytes * 124_439_808


def stack_trace(use_reentrant):
    return tc.capture(Stack(use_reentrant), torch.zeros(2, 64), loss=lambda output, _: output.sum())


# Without reentry the second run stops as soon as backward has what it needs: the last layer of a block is left out.
@pytest.mark.parametrize(("use_reentrant", "n_linears_again"), [(False, 1), (True, 2)])
def test_checkpointing_computes_the_forward_of_its_blocks_again(use_reentrant, n_linears_again):
    plain, again = stack_trace(None), stack_trace(use_reentrant)
    assert again.forward_flop(16) == plain.forward_flop(16)
    assert again.backward_flop(16) - plain.backward_flop(16) == 8 * n_linears_again * 2 * 64 * 256 * 16
    assert again.graph.op_recomputed.sum() > 0
    assert plain.graph.op_recomputed.sum() == 0
    assert [parameter.gradient >= 0 for parameter in again.parameters] == [True] * 34


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_lowers_the_peak(use_reentrant, precision):
    batch = np.array([4096])
    plain, again = (
        peak_bytes(lower(stack_trace(kind), target="cuda", settings=Settings(precision, "none")), batch)[0]
        for kind in (None, use_reentrant)
    )
    hidden = (4 if precision == "fp32" else 2) * 4096 * 256
    assert plain - again > 4 * hidden  # of eight blocks, one is there at a time, and the inputs of all


class Cast(nn.Module):
    def __init__(self, cast):
        super().__init__()
        self.first, self.second, self.cast = nn.Linear(8, 8), nn.Linear(8, 8), cast

    def forward(self, x):
        x = self.first(x)
        return self.second(self.cast(x, self.second.weight.dtype))


def square_as_float(x, dtype):
    return (x.float() ** 2).to(dtype)


def cast_names(cast, precision):
    trace = tc.capture(Cast(cast), torch.zeros(2, 8), loss=lambda output, _: output.sum())
    lowered = lower(trace, target="cpu", settings=Settings(precision, "none"))
    return lowered, names_in(lowered, Phase.FORWARD)["aten._to_copy"]


def test_a_request_for_float_is_a_cast_in_bf16_and_nothing_in_fp32():
    assert cast_names(square_as_float, "fp32")[1] == 0
    lowered, n_casts = cast_names(square_as_float, "bf16")
    assert n_casts == 2  # up, and back to the dtype of the weight
    assert dtypes_read(lowered, "aten.pow") == {FLOAT32}
    assert dtypes_read(lowered, "aten.addmm") == {BFLOAT16}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_request_for_the_dtype_of_another_tensor_follows_the_model(precision):
    assert cast_names(lambda x, dtype: x.to(x.dtype).to(dtype), precision)[1] == 0


def test_the_dtype_of_a_softmax_is_a_request_too():
    lowered, n_casts = cast_names(lambda x, dtype: torch.softmax(x, -1, dtype=torch.float32).to(dtype), "bf16")
    assert n_casts == 2
    assert dtypes_read(lowered, "aten._softmax") == {FLOAT32}


def test_activations_outlive_the_forward_pass_and_temporaries_do_not():
    lowered = lower(tc.load_model("vgg11"), target="cuda", settings=Settings("fp32", "none"))
    first_backward = int(np.argmax(lowered.op_phase == Phase.BACKWARD))
    by_kind = alive_bytes_by_kind(lowered, 2)
    assert by_kind[StorageKind.ACTIVATION, first_backward] > 0
    temporary = lowered.storage_kind == StorageKind.TEMPORARY
    crosses = (lowered.storage_alloc < first_backward) & (lowered.storage_free > first_backward)
    assert not (temporary & crosses).any()
