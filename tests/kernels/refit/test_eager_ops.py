"""The ops that a layer's recipe lists are those that PyTorch dispatches, byte for byte."""

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from traincast.kernels.byte_kernels import label_waits, softmax_work
from traincast.kernels.refit.modern import eager_ops as eager
from traincast.kernels.work import Work

META = {"device": "meta"}
_FREE = {"detach", "expand", "t", "transpose", "slice", "split", "unsqueeze", "view", "new_empty_strided", "alias"}
_STOLEN = {"copy_"}  # a GPU keeps the gradient itself where tensors without values are copied


class Counter(TorchDispatchMode):
    """Bytes of every op that is no view: what it reads, each element once, and what it writes."""

    def __init__(self):
        super().__init__()
        self.bytes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in _FREE | _STOLEN:
            tensors = {id(t): t for t in torch.utils._pytree.tree_leaves((args, output)) if isinstance(t, torch.Tensor)}
            self.bytes.append(sum(distinct_bytes(tensor) for tensor in tensors.values()))
        return output


def distinct_bytes(tensor):
    count = tensor.element_size()
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= length if stride else 1
    return count


def dispatched(run):
    with Counter() as counter:
        run()
    return counter.bytes


class LlamaNorm(torch.nn.Module):
    """As transformers writes it; weights stay in fp32."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width, **META))

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def squared(x):
    return torch.square(torch.relu(x))


def halves(x):
    gate, up = torch.chunk(x, 2, -1)
    return functional.silu(gate) * up


ROWS, WIDTH = 512, 4096


def same(counted, listed):
    """Up to statistics and weights, which are less than a hundredth of the elements."""
    large = [n_bytes / (ROWS * WIDTH) for n_bytes in counted if n_bytes > 0.02 * ROWS * WIDTH]
    calls = [call.bytes / (ROWS * WIDTH) for call in listed if call.bytes > 0.02 * ROWS * WIDTH]
    assert large == pytest.approx(calls, rel=0.02)


@pytest.mark.parametrize(
    ("layer", "width", "listed"),
    [
        (LlamaNorm(WIDTH), WIDTH, eager.rms_norm(ROWS, WIDTH)),
        (squared, WIDTH, eager.squared_relu(ROWS * WIDTH)),
    ],
)
def test_a_recipe_of_bf16_ops_is_what_pytorch_dispatches_both_ways(layer, width, listed):
    x = torch.empty(ROWS, width, dtype=torch.bfloat16, requires_grad=True, **META)
    gradient = torch.empty_like(x)

    same(dispatched(lambda: layer(x)), listed.forward)

    output = layer(x)
    same(dispatched(lambda: output.backward(gradient.to(output.dtype))), listed.backward)


def test_a_gate_of_halves_reads_them_where_they_lie_and_joins_their_gradients():
    listed = eager.gated_halves(ROWS * WIDTH)
    x = torch.empty(ROWS, 2 * WIDTH, dtype=torch.bfloat16, requires_grad=True, **META)

    same(dispatched(lambda: halves(x)), listed.forward)

    output = halves(x)
    of_sum = torch.empty((), dtype=torch.bfloat16, **META).expand(ROWS, WIDTH)
    same(dispatched(lambda: output.backward(of_sum)), listed.backward)


def test_rotary_heads_are_read_one_element_at_a_time_but_for_the_sum_of_two_gradients():
    listed = eager.rotary(1000)

    assert [call.bytes for call in listed.forward] == [4000, 2000, 4000, 4000, 6000]
    assert {call.work for call in listed.forward} == {Work.UNEVEN}
    assert [call.shape[0] for call in listed.forward] == [1000, 500, 1000, 1000, 1000]  # half of them change their sign
    assert [call.work for call in listed.backward].count(Work.ELEMENTWISE) == 1


def test_a_loss_over_a_large_vocabulary_reads_its_logits_three_times_and_labels_one_after_the_other():
    loss = eager.cross_entropy(1024, 131072, "fp32")

    assert [call.work for call in loss.forward] == [Work.SOFTMAX_HUGE, Work.LABEL_LOSS]
    assert loss.forward[1].shape[0] == 32  # 1024 labels, 32 at a time
    assert [call.work for call in loss.added] == [Work.ELEMENTWISE]
    assert sum(call.bytes for call in loss.backward) == 4 * 4 * 1024 * 131072


@pytest.mark.parametrize(("width", "work"), [(1000, "SOFTMAX"), (16384, "SOFTMAX_LONG"), (32768, "SOFTMAX_HUGE")])
def test_the_longer_a_row_of_a_softmax_the_more_often_it_is_read(width, work):
    assert softmax_work(width, 4) == Work[work]


@pytest.mark.parametrize(("n_rows", "waits"), [(64, 2), (8192, 16), (65536, 64)])
def test_a_thread_takes_sixteen_labels_until_there_are_no_more_threads(n_rows, waits):
    assert label_waits(n_rows) == waits
