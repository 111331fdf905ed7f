"""Adapters that are asked for equal adapters that were written by hand and captured."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from checkpointed_blocks import N_HEADS, WIDTH, Net, captured, mean_square
from torch import nn

import traincast as tc
from traincast.errors import InputError
from traincast.frontend.capturing.capture import capture
from traincast.memory.timeline import peak_bytes
from traincast.trace.adapter_text import find_adapter
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower
from traincast.trace.rewrite.adapter import adapted, linear_layers
from traincast.trace.rewrite.four_bit import DEQUANTIZE
from traincast.trace.settings import Settings

RANK, BATCHES = 4, np.array([1, 8, 100])


class Lora(nn.Module):
    """What peft puts in place of a linear layer."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.lora_a = nn.Linear(base.in_features, RANK, bias=False)
        self.lora_b = nn.Linear(RANK, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.lora_b(self.lora_a(x)) * 2.0

    @property
    def weight(self):
        return self.base.weight


def by_hand(names):
    net = Net(None, n_kv_heads=N_HEADS).requires_grad_(False)
    for block in net.blocks:
        for name in names:
            setattr(block, name, Lora(getattr(block, name)))
    return captured(net)


def asked(text):
    return adapted(captured(Net(None, n_kv_heads=N_HEADS)), find_adapter(text))


def products(graph):
    kinds, rows = op_kinds(graph), list(zip(graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True))
    flat = np.prod  # ours multiplies and adds in the two dimensions of the product, a module of one's own in three
    return Counter(
        (
            graph.name_of(op),
            int(graph.op_phase[op]),
            *(
                graph.shape_of(t, 8) if kinds[op] == OpKind.GEMM else int(flat(graph.shape_of(t, 8)))
                for t in (*rows[op][0], *rows[op][1])
            ),
        )
        for op in range(graph.n_ops)
        if kinds[op] in (OpKind.GEMM, OpKind.ATTENTION, OpKind.NORMALISATION, OpKind.ELEMENTWISE)
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lora:4", ["query", "key", "value", "out", "up", "down"]),
        ("lora:4:q,v", ["query", "value"]),
        ("lora:4:down", ["down"]),
    ],
)
def test_an_adapter_is_what_one_would_have_written(text, names, precision):
    ours, theirs = (lower(each, settings=Settings(precision, "adamw")) for each in (asked(text), by_hand(names)))
    assert products(ours) == products(theirs)
    assert peak_bytes(ours, BATCHES) == pytest.approx(peak_bytes(theirs, BATCHES), rel=0.001)


def test_only_the_thin_matrices_have_gradients_and_states():
    trace = asked("lora:4:q,v")
    assert trace.n_trainable_parameters == 2 * 2 * (WIDTH * RANK + RANK * WIDTH)
    graph = lower(trace, settings=Settings("fp32", "adamw"))
    sizes = graph.storage_bytes(np.array([1]))[0]
    of_kind = [sizes[graph.storage_kind == kind].sum() for kind in (StorageKind.GRADIENT, StorageKind.OPTIMIZER_STATE)]
    n_matrices = 2 * 2 * 2
    assert of_kind == [4 * trace.n_trainable_parameters, 8 * trace.n_trainable_parameters + 4 * n_matrices]


def test_nothing_before_the_first_adapter_has_a_gradient():
    trace = asked("lora:4:down")
    backward = np.flatnonzero(trace.graph.op_phase == Phase.BACKWARD)
    touched = {trace.modules[trace.graph.op_module[op]].path for op in backward}
    assert not any(path == "first" or (path.startswith("blocks.0.") and "down" not in path) for path in touched)


@pytest.mark.parametrize(("text", "n_trained"), [("lora:16:q,v", 8_388_608), ("lora:8:q_proj,v_proj", 4_194_304)])
def test_llama_2_7b_has_as_many_trained_parameters_as_peft_prints(text, n_trained):
    """32 blocks of width 4096; two of them are asked, sixteen times."""

    class Projections(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.v_proj = (nn.Linear(4096, 4096, bias=False) for _ in "qv")

        def forward(self, x):
            return x + self.q_proj(x) + self.v_proj(x)

    with torch.device("meta"):
        net = nn.Sequential(*(Projections() for _ in range(2)))
    trace = adapted(capture(net, torch.zeros(2, 4, 4096), loss=mean_square), find_adapter(text))
    assert 16 * trace.n_trainable_parameters == n_trained


def test_llama_3_2_1b_has_as_many_as_peft_prints_for_all_linear_layers():
    """16 blocks: q and o 2048 x 2048, k and v 2048 x 512, gate, up and down 2048 x 8192, rank 16."""
    trace = adapted(tc.load_model("llama-1b"), find_adapter("lora:16"))
    assert trace.n_trainable_parameters == 11_272_192


def test_four_bits_are_half_a_byte_a_weight_and_its_scales():
    plain, four = asked("lora:4"), asked("qlora:4")
    weights = {layer.weight for layer in linear_layers(captured(Net(None, n_kv_heads=N_HEADS)))}
    assert len(weights) == 12
    n_quantized = 2 * (4 * WIDTH * WIDTH + 2 * 4 * WIDTH * WIDTH)

    def weight_bytes(trace):
        graph = lower(trace, settings=Settings("bf16", "none"))
        return int(graph.storage_bytes(np.array([1]))[0][graph.storage_kind == StorageKind.WEIGHT].sum())

    saved = weight_bytes(plain) - weight_bytes(four)
    assert saved == pytest.approx((2 - 0.5 - 1 / 64 - 4 / 64 / 256) * n_quantized, rel=1e-3)
    assert four.n_parameters == plain.n_parameters


def test_four_bit_weights_are_made_whole_for_each_use_and_let_go():
    graph = lower(asked("qlora:4"), settings=Settings("bf16", "none"))
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    made = [op for op in range(graph.n_ops) if graph.name_of(op) == DEQUANTIZE]
    phases = Counter(int(graph.op_phase[op]) for op in made)
    assert phases == {
        int(Phase.FORWARD): 12,
        int(Phase.BACKWARD): 12 - 3,
    }  # the first q, k and v need no input gradient
    for op in made:
        assert graph.shape_of(outputs[op][0], 1)[-1] >= WIDTH
        storage = graph.tensor_storage[outputs[op][0]]
        assert graph.storage_free[storage] - graph.storage_alloc[storage] <= 12
        assert len(inputs[op]) == 3


def test_recomputation_runs_adapters_again():
    plain = captured(Net(None, n_kv_heads=N_HEADS))
    graphs = [
        lower(plain, settings=Settings("bf16", "adamw", recompute=how, adapter="qlora:4")) for how in ("none", "full")
    ]
    assert graphs[1].op_recomputed.sum() > 0
    peaks = [peak_bytes(graph, np.array([100]))[0] for graph in graphs]
    assert peaks[1] < 0.7 * peaks[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lora", "is not known: write lora:16 (rank)"),
        ("lora:0", "has rank 0, which trains nothing: choose at least 1"),
        ("dora:16", "is not known"),
        ("lora:-1", "is not known"),
    ],
)
def test_what_is_no_adapter_is_told_how_to_write_one(text, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Settings(adapter=text)


def test_models_without_such_layers_say_which_they_have():
    with pytest.raises(InputError, match="vgg16 has none: leave it out"):
        tc.estimate_memory("vgg16", adapter="lora:16")
    with pytest.raises(InputError, match=r"is called 'gate'\. They are query, key, value, out, up, down"):
        asked("lora:4:gate")


def test_the_answer_says_what_is_trained():
    answer = tc.forecast("gpt2", "T4", 1, adapter="lora:16")
    assert any("all else frozen" in told for told in answer.assumptions)
    assert answer.to_dict()["adapter"] == "lora:16"
