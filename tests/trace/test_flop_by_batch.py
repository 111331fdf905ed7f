"""Flop at any batch size: from a few of them, unless an op grows faster than their square."""

import numpy as np
import pytest
import torch

import traincast as tc
from traincast.trace.flop import op_flop


class Kernel(torch.nn.Module):
    """Samples against samples, as kernel methods do: B x B, and its square."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        similar = self.scale * (x @ x.T)
        return similar @ similar


@pytest.mark.parametrize("batch", [1, 2, 7, 100, 10_007])
def test_an_op_that_grows_with_the_cube_of_the_batch_is_counted_right(batch):
    trace = tc.capture(Kernel(), lambda n: torch.empty(n, 16), mode="inference")
    assert trace.forward_flop(batch) == 2 * 16 * batch**2 + 2 * batch**3


@pytest.mark.parametrize("model", ["resnet18", "gpt2", "lstm_lm", "vit_b_16"])
def test_one_batch_size_or_many_are_the_same_and_whole(model):
    trace = tc.load_model(model)
    sizes = np.array([1, 2, 3, 64, 1_000_003])
    together = op_flop(trace.graph, sizes)
    assert np.array_equal(together, np.concatenate([op_flop(trace.graph, sizes[[row]]) for row in range(len(sizes))]))
    assert np.array_equal(together, np.round(together))
    assert together.min() >= 0
