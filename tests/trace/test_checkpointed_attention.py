"""Blocks with attention under gradient checkpointing: what runs again is what ran, and the rest stays as it was."""

import warnings
from collections import Counter

import numpy as np
import pytest
import torch
from checkpointed_blocks import N_HEADS, N_POSITIONS, WIDTH, Net, captured, mean_square
from real_step import moved_bytes, products, record_real
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from traincast.frontend.capturing.capture import capture
from traincast.memory.timeline import peak_bytes
from traincast.trace.dtypes import DTYPES
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings


def rows(graph, chosen):
    """Name, dtypes read and dtypes written of the chosen ops, views aside."""
    inputs, outputs, kinds = graph.op_inputs.rows(), graph.op_outputs.rows(), op_kinds(graph)
    return Counter(
        (graph.name_of(op), *(tuple(DTYPES[graph.tensor_dtype[t]] for t in side[op]) for side in (inputs, outputs)))
        for op in np.flatnonzero(chosen)
        if kinds[op] != OpKind.VIEW
    )


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16", "amp-bf16", "bf16"])
@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.1}, {"masked": True}, {"n_kv_heads": N_HEADS}], ids=str)
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_step_is_the_step_without_and_its_forward_ops_again(use_reentrant, options, precision):
    traces = captured(Net(None, **options)), captured(Net(use_reentrant, **options))
    plain, again = (lower(trace, target="cuda", settings=Settings(precision, "none")) for trace in traces)
    assert plain.op_recomputed.sum() == 0
    assert traces[0].forward_flop(8) == traces[1].forward_flop(8)

    forward, rest = (again.op_phase == Phase.FORWARD), (again.op_phase == Phase.BACKWARD) & (again.op_recomputed == 0)
    assert rows(again, forward) == rows(plain, plain.op_phase == Phase.FORWARD)
    assert rows(again, rest) == rows(plain, plain.op_phase == Phase.BACKWARD)

    in_blocks = np.array([trace_module.path.startswith("blocks") for trace_module in traces[1].modules])
    ran, reran = rows(again, forward & in_blocks[again.op_module]), rows(again, again.op_recomputed == 1)
    assert not reran - ran
    if use_reentrant:
        assert not ran - reran
    else:  # the second run stops as soon as backward has what it needs: before the last sum, or the last layer
        assert {name for name, *_ in ran - reran} <= {"aten.add", "aten.addmm", "aten._to_copy"}


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_step_runs_the_products_of_a_real_one_and_moves_and_holds_its_bytes(use_reentrant, autocast):
    module = Net(use_reentrant, n_kv_heads=N_HEADS)
    real = record_real(module, torch.zeros(8, N_POSITIONS, WIDTH), mean_square, autocast=autocast)
    lowered = lower(captured(module), target="cpu", settings=Settings("amp-bf16" if autocast else "fp32", "none"))
    assert products(lowered, 8) == products(real, 8)
    assert moved_bytes(lowered, 8) == pytest.approx(moved_bytes(real, 8), rel=0.02)
    peaks = [peak_bytes(graph, np.array([8]))[0] for graph in (lowered, real)]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.02)


class OnlyAttention(nn.Module):
    """Checkpoints a function, not a module: no module is called when it runs again."""

    def __init__(self, use_reentrant):
        super().__init__()
        self.inner, self.use_reentrant = nn.ModuleDict({"query": nn.Linear(WIDTH, WIDTH)}), use_reentrant
        self.outer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = self.inner["query"](x)[:, None]
        return self.outer(checkpoint(scaled_dot_product_attention, x, x, x, use_reentrant=self.use_reentrant))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_function_is_marked_as_recomputed_though_it_is_no_module(use_reentrant):
    graph = captured(OnlyAttention(use_reentrant)).graph
    again = [graph.name_of(op) for op in np.flatnonzero(graph.op_recomputed)]
    assert again == ["traincast.attention"]


def test_a_hugging_face_model_with_gradient_checkpointing_attends_again_in_one_op():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 100}
    config = transformers.LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **sizes)
    model = transformers.LlamaForCausalLM(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the name that everybody uses is to be replaced
        model.gradient_checkpointing_enable()
    tokens = torch.zeros(2, 16, dtype=torch.long)
    graph = capture(model, {"input_ids": tokens, "labels": tokens}).graph
    again = Counter(graph.name_of(op) for op in np.flatnonzero(graph.op_recomputed))
    assert again["traincast.attention"] == 2
    assert again["aten.bmm"] == again["aten._softmax"] == 0
