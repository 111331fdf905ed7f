"""fp8: which products have operands of one byte, and what that costs and saves."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.trace.dtypes import DTYPES, ITEM_BYTES
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

LLAMA = tc.load_model("llama-1b")


@pytest.fixture(scope="module")
def graph():
    return lower(LLAMA, settings=Settings("fp8", "adamw"))


def products(graph):
    """(phase, dtypes of the operands, dtype of the output) of every product."""
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    return [
        (
            int(graph.op_phase[op]),
            tuple(DTYPES[graph.tensor_dtype[tensor]] for tensor in inputs[op][-2:]),
            DTYPES[graph.tensor_dtype[outputs[op][0]]],
        )
        for op, kind in enumerate(op_kinds(graph))
        if kind == OpKind.GEMM
    ]


def test_seven_layers_a_block_are_multiplied_in_eight_bits_and_the_head_is_not(graph):
    found = products(graph)
    narrow = [each for each in found if "float8" in each[1][0]]
    wide = [each for each in found if "float8" not in each[1][0]]
    assert len([each for each in narrow if each[0] == Phase.FORWARD]) == 16 * 7
    assert len([each for each in narrow if each[0] == Phase.BACKWARD]) == 16 * 7 * 2
    assert len(wide) == 3
    assert {each[2] for each in found} == {"bfloat16"}


def test_gradients_are_e5m2_and_all_else_e4m3(graph):
    of_backward = [set(each[1]) for each in products(graph) if each[0] == Phase.BACKWARD and "float8" in each[1][0]]
    assert all(each == {"float8_e4m3fn", "float8_e5m2"} for each in of_backward)
    of_forward = [set(each[1]) for each in products(graph) if each[0] == Phase.FORWARD]
    assert {"float8_e4m3fn"} in of_forward


def test_weights_gradients_and_states_stay_as_in_bf16(graph):
    plain = lower(LLAMA, settings=Settings("bf16", "adamw"))
    for kind in (0, 3, 4):
        sizes = [int(one.storage_bytes(np.array([1]))[0][one.storage_kind == kind].sum()) for one in (plain, graph)]
        assert sizes[0] == sizes[1]
    attention = [op for op, kind in enumerate(op_kinds(graph)) if kind == OpKind.ATTENTION]
    read = graph.op_inputs.rows()
    assert all(ITEM_BYTES[graph.tensor_dtype[read[op][0]]] == 2 for op in attention)


def test_what_is_recomputed_is_narrowed_again():
    graph = lower(LLAMA, settings=Settings("fp8", "adamw", recompute="full"))
    again = [
        op
        for op, kind in enumerate(op_kinds(graph))
        if kind == OpKind.GEMM and graph.op_recomputed[op] and graph.tensor_dtype[graph.op_inputs.rows()[op][-1]] > 11
    ]
    assert len(again) == 16 * 6


def test_megatron_narrows_each_tensor_once_and_keeps_it_for_backward():
    def n_narrowed(stack):
        graph = lower(LLAMA, settings=Settings("fp8", "adamw", stack=stack))
        outputs = graph.op_outputs.rows()
        return sum(
            graph.name_of(op) == "aten._to_copy" and "float8" in DTYPES[graph.tensor_dtype[outputs[op][0]]]
            for op in range(graph.n_ops)
        )

    assert n_narrowed("torch") == 16 * 7 * 3 * 2  # two operands of each product
    # Seven weights, seven gradients, and the inputs of q (also of k and v), of o, of gate (also of up) and of down.
    assert n_narrowed("megatron") == 16 * (7 + 7 + 4)


@pytest.mark.parametrize("method", ["traincast", "roofline"])
def test_large_layers_gain_more_than_small_ones(method):
    def gain(model, batch):
        bf16, fp8 = (
            tc.forecast(model, "H100-SXM5-80GB", batch, precision=name, method=method) for name in ("bf16", "fp8")
        )
        return bf16.step_s / fp8.step_s

    assert gain("llama-1b", 4) > gain("gpt2", 4)
    assert gain("llama-1b", 4) < 2


def test_a_card_without_fp8_names_the_nearest_that_works():
    with pytest.raises(InputError, match=r"A100-SXM4-80GB has no fp8 units: choose precision bf16"):
        tc.forecast("llama-1b", "A100-SXM4-80GB", 1, precision="fp8")


def test_a_model_without_blocks_is_told_so():
    with pytest.raises(InputError, match=r"vgg16 has none: choose bf16"):
        tc.estimate_memory("vgg16", precision="fp8")
    with pytest.raises(InputError, match=r"knows no fp8"):
        tc.forecast("gpt2", "H100-SXM5-80GB", 1, precision="fp8", method="paleo")
