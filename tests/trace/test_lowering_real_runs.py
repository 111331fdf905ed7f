"""What lowering says a CPU runs, against what it ran."""

import functools

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from real_step import (
    OPTIMIZERS,
    moved_bytes,
    optimizer_ops,
    products,
    read_bytes,
    record_real,
    small_model,
)

from traincast.frontend.capturing.capture import capture
from traincast.memory.timeline import peak_bytes
from traincast.trace.dtypes import DTYPES
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

BATCH = 4
AUTOCAST = {"fp32": None, "amp-bf16": torch.bfloat16}
MODELS = ["cifar_resnet20", "mnist_cnn", "cifar10_cnn", "mobilenet_v2", "bert", "gpt2", "llama", "vit_b_16"]


@functools.cache
def captured(name):
    module, example, loss = small_model(name)
    return module, example, loss, capture(module, example, loss=loss)


def peak(graph):
    return peak_bytes(graph, np.array([BATCH]))[0]


@pytest.mark.parametrize("precision", AUTOCAST)
@pytest.mark.parametrize("name", MODELS)
def test_a_lowered_step_runs_the_products_of_a_real_one_and_moves_and_holds_its_bytes(name, precision):
    module, example, loss, trace = captured(name)
    real = record_real(module, example(BATCH), loss, autocast=AUTOCAST[precision])
    lowered = lower(trace, target="cpu", settings=Settings(precision, "none"))
    assert products(lowered, BATCH) == products(real, BATCH)
    assert moved_bytes(lowered, BATCH) == pytest.approx(moved_bytes(real, BATCH), rel=0.02)
    assert peak(lowered) == pytest.approx(peak(real), rel=0.02)


# This CPU has no bf16 LSTM. mkldnn runs one op a layer, and each writes its states once more than the fused op.
def test_a_lowered_lstm_moves_and_holds_the_bytes_of_a_real_one():
    module, example, loss, trace = captured("lstm_lm")
    real = record_real(module, example(BATCH), loss)
    lowered = lower(trace, target="cpu", settings=Settings("fp32", "none"))
    assert products(lowered, BATCH) == products(real, BATCH)
    assert moved_bytes(lowered, BATCH) == pytest.approx(moved_bytes(real, BATCH), rel=0.02)
    assert peak(lowered) == pytest.approx(peak(real), rel=0.02)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_on_a_cpu_an_optimizer_runs_op_by_op_as_pytorch_does(optimizer):
    module, example, loss, trace = captured("mnist_cnn")
    real = record_real(module, example(BATCH), loss, optimizer=OPTIMIZERS[optimizer](module.parameters(), False))
    lowered = lower(trace, target="cpu", settings=Settings("fp32", optimizer))
    assert optimizer_ops(lowered) == optimizer_ops(real)
    assert moved_bytes(lowered, BATCH, phase=Phase.OPTIMIZER) == pytest.approx(
        moved_bytes(real, BATCH, phase=Phase.OPTIMIZER), rel=0.02
    )
    assert peak(lowered) == pytest.approx(peak(real), rel=0.02)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_on_a_gpu_an_optimizer_runs_one_op_over_all_parameters_as_pytorch_does(optimizer):
    module, example, loss, trace = captured("mnist_cnn")
    real = record_real(module, example(BATCH), loss, optimizer=OPTIMIZERS[optimizer](module.parameters(), True))
    lowered = lower(trace, target="cuda", settings=Settings("fp32", optimizer))
    assert optimizer_ops(lowered) == optimizer_ops(real)
    assert read_bytes(lowered, BATCH, phase=Phase.OPTIMIZER) == pytest.approx(
        read_bytes(real, BATCH, phase=Phase.OPTIMIZER), rel=0.02
    )
    assert peak(lowered) == pytest.approx(peak(real), rel=0.02)


def test_without_an_optimizer_nothing_follows_the_backward_pass():
    *_, trace = captured("mnist_cnn")
    assert optimizer_ops(lower(trace, target="cpu", settings=Settings("fp32", "none"))) == []


def test_an_unknown_target_is_refused_by_name():
    *_, trace = captured("mnist_cnn")
    with pytest.raises(ValueError, match=r"^target 'gpu' is not known\..*Choose from: cuda, cpu\.$"):
        lower(trace, target="gpu")


class ThreeReaders(torch.nn.Module):
    """One fp32 tensor that three bf16 products read: its three gradients are added up in fp32."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.readers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        x = self.norm(x)
        return sum(reader(x) for reader in self.readers)


def test_gradients_of_an_fp32_tensor_are_added_up_in_fp32():
    module, loss = ThreeReaders(), lambda output, _: output.float().square().sum()
    trace = capture(module, torch.zeros(2, 64), loss=loss)
    lowered = lower(trace, target="cuda", settings=Settings("amp-bf16", "none"))
    sums = [op for op in range(lowered.n_ops) if lowered.name_of(op) == "aten.add" and lowered.op_phase[op] == 2]
    dtypes = [DTYPES[lowered.tensor_dtype[tensor]] for op in sums for tensor in lowered.op_inputs.rows()[op]]
    assert dtypes == ["float32"] * 4


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_under_autocast_casts_the_weights_again(reentrant):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(torch.nn.Sequential.forward, self, x, use_reentrant=reentrant)

    class Block(torch.nn.Sequential):
        pass

    Block.forward = forward
    layers = [Block(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)) for _ in range(3)]
    module, loss = torch.nn.Sequential(torch.nn.Linear(64, 64), *layers), lambda output, _: output.float().mean()
    trace = capture(module, torch.zeros(2, 64), loss=loss)
    real = record_real(module, torch.zeros(256, 64), loss, autocast=torch.bfloat16)
    lowered = lower(trace, target="cpu", settings=Settings("amp-bf16", "none"))
    assert moved_bytes(lowered, 256) == pytest.approx(moved_bytes(real, 256), rel=0.02)
