"""Recomputation that is asked for equals recomputation that was captured, and costs and saves what it should."""

import numpy as np
import pytest
import torch
from checkpointed_blocks import N_HEADS, N_POSITIONS, WIDTH, Net, captured
from torch import nn

from traincast.api.models import load_model
from traincast.errors import InputError
from traincast.frontend.capturing.capture import capture
from traincast.memory.timeline import peak_bytes
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower
from traincast.trace.rewrite.blocks import block_paths, blocks_of
from traincast.trace.rewrite.recompute import recomputed
from traincast.trace.settings import Settings

BATCHES = np.array([1, 8, 100])


def step(graph):
    """Every op with its shapes at a batch of 4, in order."""
    rows = zip(graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True)
    return [
        (
            graph.name_of(op),
            int(graph.op_phase[op]),
            int(graph.op_recomputed[op]),
            *([(graph.shape_of(tensor, 4), int(graph.tensor_dtype[tensor])) for tensor in side] for side in sides),
        )
        for op, sides in enumerate(rows)
    ]


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "bf16"])
@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.1, "n_kv_heads": N_HEADS}], ids=str)
@pytest.mark.parametrize(("use_reentrant", "how"), [(False, "full"), (True, "reentrant")])
def test_what_is_asked_for_is_what_pytorch_would_have_run(use_reentrant, how, options, target, precision):
    real, plain = captured(Net(use_reentrant, **options)), captured(Net(None, **options))
    settings = Settings(precision, "adamw")
    wanted = lower(real, target=target, settings=settings)
    asked = lower(plain, target=target, settings=Settings(precision, "adamw", recompute=how))
    assert sorted(map(str, step(asked))) == sorted(map(str, step(wanted)))
    if how == "full":
        assert step(asked) == step(wanted)
        assert peak_bytes(asked, BATCHES).tolist() == peak_bytes(wanted, BATCHES).tolist()
    elif precision == "fp32" and target == "cuda":  # casts and CPU dropout live longer in ours: up to 25 % high
        assert peak_bytes(asked, BATCHES) == pytest.approx(peak_bytes(wanted, BATCHES), rel=0.01)


@pytest.fixture(scope="module")
def llama():
    return load_model("llama-1b")


def again(trace, how, stack="torch"):
    """Names of the ops that run again in the last block, and how often each kind does there."""
    graph = recomputed(trace, how, stack=stack).graph
    last = blocks_of(trace)[-1].path
    inside = np.array([f"{module.path}.".startswith(f"{last}.") for module in trace.modules])
    kinds = op_kinds(graph)
    return [kinds[op] for op in np.flatnonzero(graph.op_recomputed) if inside[graph.op_module[op]]]


def test_a_llama_block_has_seven_products_and_runs_six_again_or_seven(llama):
    n_again = {how: again(llama, how).count(OpKind.GEMM) for how in ("full", "reentrant", "selective")}
    assert n_again == {"full": 6, "reentrant": 7, "selective": 3}  # the last one is kept: every second of seven


def test_selective_is_the_opposite_in_torch_and_in_megatron(llama):
    torch_kinds, megatron_kinds = again(llama, "selective"), again(llama, "selective", "megatron")
    assert OpKind.ATTENTION not in torch_kinds
    assert megatron_kinds == [OpKind.ATTENTION]


def test_every_second_block_is_half_of_them(llama):
    trace = recomputed(llama, "full:2", stack="torch")
    paths = {trace.modules[module].path for module in trace.graph.op_module[trace.graph.op_recomputed == 1].tolist()}
    numbers = {int(path.split(".")[2]) for path in paths if path.startswith("model.layers.")}
    assert numbers == {1, 3, 5, 7, 9, 11, 13, 15}


def test_more_recomputation_keeps_less_and_computes_more(llama):
    def bytes_and_flop(how):
        trace = recomputed(llama, how, stack="torch")
        graph = lower(llama, settings=Settings("bf16", "adamw", recompute=how))
        return int(peak_bytes(graph, np.array([8]))[0]), trace.backward_flop(8)

    held, flop = zip(*(bytes_and_flop(how) for how in ("none", "full:2", "selective", "full")), strict=True)
    assert list(held) == sorted(held, reverse=True)
    assert flop[0] < min(flop[1:])
    assert flop[3] == max(flop)


def test_the_forward_pass_and_its_flop_stay_as_they_are(llama):
    trace = recomputed(llama, "full", stack="torch")
    assert trace.forward_flop(2) == llama.forward_flop(2)
    assert trace.n_parameters == llama.n_parameters
    assert trace.graph.n_ops == llama.graph.n_ops + int(trace.graph.op_recomputed.sum())
    assert (trace.graph.op_phase[trace.graph.op_recomputed == 1] == Phase.BACKWARD).all()


class Mixed(nn.Module):
    """Experts inside blocks: the blocks are what repeats outermost."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"experts": nn.ModuleList(_expert() for _ in range(2))}) for _ in "ab"
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + sum(expert(x) for expert in layer["experts"])
        return x


def _expert():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())


def test_blocks_are_the_outermost_modules_that_repeat():
    trace = capture(Mixed(), torch.zeros(2, N_POSITIONS, WIDTH), loss=lambda output, _: output.sum())
    assert block_paths(trace) == ("layers.0", "layers.1")


@pytest.mark.parametrize(
    ("model", "n_blocks"), [("gpt2", 12), ("bert-large", 24), ("llama-1b", 16), ("resnet50", 16), ("vit_b_16", 12)]
)
def test_models_of_the_zoo_have_their_blocks(model, n_blocks):
    assert len(blocks_of(load_model(model))) == n_blocks


def test_a_model_without_blocks_is_told_so():
    with pytest.raises(InputError, match="vgg16 has no blocks that repeat: leave it at none"):
        recomputed(load_model("vgg16"), "full", stack="torch")


def test_what_was_captured_with_checkpointing_is_not_recomputed_twice():
    with pytest.raises(InputError, match="captured with activation checkpointing"):
        recomputed(captured(Net(False)), "full", stack="torch")


@pytest.mark.parametrize("name", ["all", "full:0", "full:x", "selective:2"])
def test_an_unknown_way_to_recompute_names_those_that_are(name):
    with pytest.raises(InputError, match="Choose from: none, selective, full, reentrant, full:2"):
        Settings(recompute=name)
