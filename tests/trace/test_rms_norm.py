"""PyTorch's RMS norm: one kernel each way on a GPU, a dozen small ones on a CPU."""

import numpy as np
import pytest
import torch
from real_step import moved_bytes, products, record_real

from traincast.frontend.capturing.capture import capture
from traincast.memory.timeline import peak_bytes
from traincast.trace.dtypes import DTYPES
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes


class Normed(torch.nn.Module):
    """Two linear layers, each after a norm: that of the first needs no gradient of its input."""

    def __init__(self, *, elementwise_affine=True):
        super().__init__()
        norms = [torch.nn.RMSNorm(64, elementwise_affine=elementwise_affine) for _ in range(2)]
        self.layers = torch.nn.Sequential(norms[0], torch.nn.Linear(64, 64), norms[1], torch.nn.Linear(64, 64))

    def forward(self, x):
        return self.layers(x)


def loss(output, _):
    return output.float().square().mean()


def lowered(target, precision, **options):
    trace = capture(Normed(**options), torch.zeros(2, 16, 64), loss=loss)
    return lower(trace, target=target, settings=Settings(precision, "none"))


def names(graph, part):
    return [graph.name_of(op) for op in range(graph.n_ops) if part in graph.name_of(op)]


def test_a_gpu_runs_one_kernel_each_way_that_reads_and_writes_its_rows_once():
    graph = lowered("cuda", "bf16")

    forward, backward = ("aten._fused_rms_norm", "aten._fused_rms_norm_backward")
    assert names(graph, "rms_norm") == [forward, forward, backward, backward]
    rows, weight, roots = 8 * 16 * 64 * 2, 64 * 2, 8 * 16 * 4
    moved = op_bytes(graph, np.array([8]))[0][[graph.name_of(op) == forward for op in range(graph.n_ops)]]
    assert moved.tolist() == [2 * rows + weight + roots] * 2


def test_under_autocast_a_gpu_norms_in_fp32_what_a_product_made_in_bf16():
    graph = lowered("cuda", "amp-bf16")

    read = [graph.op_inputs.rows()[op] for op in range(graph.n_ops) if graph.name_of(op) == "aten._fused_rms_norm"]
    assert {DTYPES[graph.tensor_dtype[tensor]] for tensors in read for tensor in tensors} == {"float32"}


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")  # it runs the same ops as others
@pytest.mark.parametrize("elementwise_affine", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
def test_on_a_cpu_a_lowered_norm_moves_and_holds_the_bytes_of_a_real_one(precision, elementwise_affine):
    graph = lowered("cpu", precision, elementwise_affine=elementwise_affine)
    module = Normed(elementwise_affine=elementwise_affine)
    autocast = torch.bfloat16 if precision == "amp-bf16" else None

    real = record_real(module, torch.zeros(256, 16, 64), loss, autocast=autocast)

    assert products(graph, 256) == products(real, 256)
    assert moved_bytes(graph, 256) == pytest.approx(moved_bytes(real, 256), rel=0.02)
    assert peak_bytes(graph, np.array([256]))[0] == pytest.approx(peak_bytes(real, np.array([256]))[0], rel=0.02)
