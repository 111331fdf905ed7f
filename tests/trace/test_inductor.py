"""Compiled steps against what Inductor plans, and the rules behind it by hand."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import traincast as tc
from traincast.trace.graph import Phase
from traincast.trace.kinds import FUSED, FUSED_REDUCTION
from traincast.trace.lowering.fuse import fuse
from traincast.trace.lowering.inductor.layout import runs_channels_last
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

BATCH = 32
ITEM = 4
GENERATED = (FUSED, FUSED_REDUCTION)


def captured(module, *shape, trains=False):
    return tc.capture(
        module.train(trains),
        lambda batch: torch.zeros(batch, *shape),
        loss=lambda output, _: output,
        mode="train" if trains else "inference",
    )


def compiled(module, *shape, trains=False, precision="fp32"):
    return fuse(lower(captured(module, *shape, trains=trains), settings=Settings(precision, "none")))


def kernels(graph, *phases):
    """Name and bytes of each kernel of the phases."""
    moved = op_bytes(graph, np.array([BATCH]))[0]
    chosen = phases or tuple(Phase)
    return [(graph.name_of(op), int(moved[op])) for op in range(graph.n_ops) if graph.op_phase[op] in chosen]


def generated_bytes(graph, *phases):
    return sum(moved for name, moved in kernels(graph, *phases) if name in GENERATED)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(256, 1024) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(1024, 256) for _ in range(2))

    def forward(self, x):
        for norm, wide, narrow in zip(self.norms, self.wide, self.narrow, strict=True):
            x = x + narrow(functional.gelu(wide(norm(x))))
        return x.square().mean()


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(256))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = RmsNorm(), RmsNorm()
        self.q, self.k, self.v, self.o = (nn.Linear(256, 256, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(256, 704, bias=False), nn.Linear(256, 704, bias=False)
        self.down = nn.Linear(704, 256, bias=False)
        self.register_buffer("cos", torch.ones(16, 64))
        self.register_buffer("sin", torch.ones(16, 64))

    def turned(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cos + torch.cat((-right, left), -1) * self.sin

    def forward(self, x):
        h = self.first(x)
        q, k, v = (part(h).view(-1, 16, 4, 64).transpose(1, 2) for part in (self.q, self.k, self.v))
        a = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(-1, 16, 256))
        h = self.second(x)
        return (x + self.down(functional.silu(self.gate(h)) * self.up(h))).mean()


class Basic(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = (nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.second_norm = nn.BatchNorm2d(64), nn.BatchNorm2d(64)

    def forward(self, x):
        x = self.one(x)
        return functional.relu(x + self.second_norm(self.two(functional.relu(self.norm(x))))).mean()


FORWARD = (Phase.FORWARD, Phase.LOSS)


@pytest.mark.parametrize(
    ("module", "shape", "trains", "phases", "inductor_bytes"),
    [
        (Mlp, (16, 256), False, FORWARD, 12_587_140),
        (Mlp, (16, 256), True, FORWARD, 13_119_620),
        (Mlp, (16, 256), True, (Phase.BACKWARD,), 23_620_616),
        (Llama, (16, 256), False, FORWARD, 10_627_204),
        (Llama, (16, 256), True, FORWARD, 10_631_300),
        (Basic, (64, 28, 28), True, FORWARD, 38_589_796),
        (Basic, (64, 28, 28), True, (Phase.BACKWARD,), 102_766_596),
    ],
)
def test_generated_kernels_move_the_bytes_that_inductor_plans(module, shape, trains, phases, inductor_bytes):
    # PyTorch 2.13, planned by the rules of its GPU code: python benchmarks/inductor_kernels.py
    graph = compiled(module(), *shape, trains=trains)
    assert generated_bytes(graph, *phases) == pytest.approx(inductor_bytes, rel=0.03)


def test_a_llama_block_in_inference_has_five_kernels_of_its_own():
    names = [name for name, _ in kernels(compiled(Llama(), 16, 256))]
    assert sum(name in GENERATED for name in names) == 5  # Inductor: 6, since the mean of all takes two
    assert names.count("aten.mm") == 7
    attention = next(number for number, name in enumerate(names) if "attention" in name)
    assert names[attention - 1] == FUSED  # both rotations in one


def test_batch_norm_joins_the_activation_and_the_residual_sum_in_inference():
    image = BATCH * 64 * 28 * 28 * ITEM
    own = [moved for name, moved in kernels(compiled(Basic(), 64, 28, 28)) if name in GENERATED]
    assert own == [pytest.approx(2 * image, rel=0.001), pytest.approx(2 * image, rel=0.001)]


class Excited(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.convolution = nn.Conv2d(128, 128, 3, padding=1, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(128)

    def forward(self, x):
        y = self.norm(self.convolution(x))
        return y * y.mean((2, 3), keepdim=True).sigmoid()


@pytest.mark.parametrize(("groups", "n_kernels"), [(1, 3), (2, 1)])
def test_a_mean_over_an_image_joins_what_made_it_unless_channels_come_last(groups, n_kernels):
    graph = compiled(Excited(groups), 128, 28, 28)
    assert sum(name in GENERATED for name, _ in kernels(graph)) == n_kernels


@pytest.mark.parametrize(("groups", "is_turned"), [(1, True), (128, True), (2, False)])
def test_images_are_turned_unless_most_flop_are_in_grouped_convolutions(groups, is_turned):
    assert runs_channels_last(lower(captured(Excited(groups), 128, 28, 28))) is is_turned


def test_training_is_not_turned_if_all_channels_are_few_or_one_convolution_is_grouped():
    assert not runs_channels_last(lower(captured(Basic(), 64, 28, 28, trains=True)))
    assert runs_channels_last(lower(tc.load_model("resnet50")))
    assert not runs_channels_last(lower(tc.load_model("resnext50_32x4d")))
    assert not runs_channels_last(lower(tc.load_model("gpt2")))


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(256, 256, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x)).mean()


def test_backward_works_a_gate_out_again_instead_of_reading_it():
    part = BATCH * 256 * ITEM
    graph = compiled(Gate(), 256, trains=True)
    forward = [moved for name, moved in kernels(graph, Phase.FORWARD) if name == FUSED]
    assert forward == [3 * part]  # two halves in, their product out: the activated half is not written
    assert 5 * part in [moved for name, moved in kernels(graph, Phase.BACKWARD) if name == FUSED]


class Pieces(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return torch.cat([x + number for number in range(self.n)], 1).tanh()


@pytest.mark.parametrize(("n", "n_kernels"), [(8, 1), (9, 2)])
def test_only_short_concatenations_join_what_reads_them(n, n_kernels):
    assert len(kernels(compiled(Pieces(n), 1000))) == n_kernels


def test_the_optimizer_stays_as_it_is():
    lowered = lower(tc.load_model("resnet18"), settings=Settings("fp32", "adam"))
    before, after = (kernels(graph, Phase.OPTIMIZER) for graph in (lowered, fuse(lowered)))
    assert before == after


def test_statistics_that_nobody_reads_are_not_written():
    graph = compiled(nn.LayerNorm(256), 256)
    assert kernels(graph) == [(FUSED_REDUCTION, (2 * BATCH * 256 + 2 * 256) * ITEM)]


def picked_storages(graph):
    """Results of look-ups: a kernel that looks rows up itself lists them as read, for their bytes."""
    outputs = graph.op_outputs.rows()
    tensors = [outputs[op][0] for op in range(graph.n_ops) if graph.name_of(op) == "aten.embedding"]
    return graph.tensor_storage[tensors] if tensors else []


def test_every_kernel_reads_what_was_written_before():
    for model in ("resnet50", "gpt2", "efficientnet_b0", "densenet121"):
        lowered = lower(tc.load_model(model), settings=Settings("amp-fp16", "adam"))
        graph = fuse(lowered)
        first = np.full(graph.n_storages, graph.n_ops)
        writes = np.repeat(np.arange(graph.n_ops), graph.op_outputs.lengths)
        np.minimum.at(first, graph.tensor_storage[graph.op_outputs.values], writes)
        reads = np.repeat(np.arange(graph.n_ops), graph.op_inputs.lengths)
        storage = graph.tensor_storage[graph.op_inputs.values]
        is_made = (graph.storage_alloc[storage] >= 0) & (graph.op_phase[reads] < Phase.OPTIMIZER)
        is_made &= ~np.isin(storage, picked_storages(lowered))
        late = [graph.name_of(op) for op in reads[is_made & (first[storage] > reads)]]
        assert not late, model
