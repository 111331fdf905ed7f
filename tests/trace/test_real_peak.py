"""Peak bytes against real steps: by our own book-keeping, and by PyTorch's memory profiler."""

import numpy as np
import pytest
import torch
from real_step import OPTIMIZERS, Stack, moved_bytes, products, record_real, small_model
from torch.profiler import ProfilerActivity, profile

from traincast.frontend.capturing.capture import capture
from traincast.frontend.capturing.meta_module import call
from traincast.memory.timeline import peak_bytes
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

BATCH = 6


def peak(graph):
    return peak_bytes(graph, np.array([BATCH]))[0]


@pytest.mark.parametrize("optimizer", ["none", "sgd"])
@pytest.mark.parametrize("name", ["cifar_resnet20", "mnist_cnn", "cifar10_cnn", "gpt2", "vit_b_16"])
def test_the_peak_of_a_step_is_that_of_the_same_step_run_for_real(name, optimizer):
    module, example, loss = small_model(name)
    used = None if optimizer == "none" else OPTIMIZERS[optimizer](module.parameters(), False)
    real = record_real(module, example(BATCH), loss, optimizer=used)
    lowered = lower(capture(module, example, loss=loss), target="cpu", settings=Settings("fp32", optimizer))
    assert peak(lowered) == pytest.approx(peak(real), rel=0.01)


@pytest.mark.parametrize("use_reentrant", [None, False, True])
def test_with_or_without_checkpointing_a_lowered_step_is_the_real_one(use_reentrant):
    module = Stack(use_reentrant)
    real = record_real(module, torch.zeros(BATCH, 64), lambda output, _: output.sum())
    trace = capture(module, torch.zeros(BATCH, 64), loss=lambda output, _: output.sum())
    lowered = lower(trace, target="cpu", settings=Settings("fp32", "none"))
    assert products(lowered, BATCH) == products(real, BATCH)
    assert moved_bytes(lowered, BATCH) == moved_bytes(real, BATCH)
    assert peak(lowered) == peak(real)


def profiled_peak_bytes(module, inputs, loss):
    """What PyTorch's CPU allocator handed out at most, from its own log of allocations and frees."""
    module.train()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss(call(module, inputs), inputs).backward()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return int(np.cumsum(changes).max())


@pytest.mark.parametrize("name", ["cifar_resnet20", "cifar10_cnn"])
def test_the_peak_of_a_step_is_the_one_that_pytorchs_memory_profiler_sees(name):
    module, example, loss = small_model(name)
    inputs = example(BATCH)
    loss(call(module, inputs), inputs).backward()  # first calls fill caches
    module.zero_grad(set_to_none=True)
    seen = profiled_peak_bytes(module, inputs, loss)
    there_before = sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers(), *inputs))
    lowered = lower(capture(module, example, loss=loss), target="cpu", settings=Settings("fp32", "none"))
    assert peak(lowered) == pytest.approx(seen + there_before, rel=0.02)


def test_one_linear_layer_can_be_counted_by_hand():
    module = torch.nn.Linear(100, 10, bias=False)
    trace = capture(module, torch.zeros(2, 100), loss=lambda output, _: output.sum())
    lowered = lower(trace, target="cpu", settings=Settings("fp32", "none"))
    weights, inputs, gradient, output = 1000, BATCH * 100, 1000, BATCH * 10
    # At most alive at once: weight, its gradient, the input, and the loss with its gradient of one number each.
    assert peak(lowered) == pytest.approx(4 * (weights + inputs + gradient), abs=4 * (output + 2))
