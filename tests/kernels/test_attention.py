"""Fused attention: the pairs that a mask leaves, tuned kernels and PyTorch's own, few and many heads."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import shipped
from traincast.kernels.kernels_of import SIZE, SIZES
from traincast.kernels.seconds import kernel_seconds, plan_of
from traincast.kernels.table import kernel_table
from traincast.kernels.ways import Kinds
from traincast.kernels.work import Work
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

A100, H100, B200 = (find_device(name) for name in ("A100-SXM4-80GB", "H100-SXM5-80GB", "B200"))


def attention_s(device, *, tokens=16384, heads=64, size=128, causal=False, backward=False, item=2, kernels="tuned"):
    """Of one call over all heads."""
    pairs = heads * tokens**2 * (0.5 if causal else 1.0)
    sizes = {
        "b": heads,
        "m": tokens,
        "n": 2 * size,
        "k": tokens,
        "flop": pairs * 2 * size * (5 if backward else 2),
        "bytes": 4.0 * heads * tokens * size * item,
    }
    full = np.array([[float(sizes.get(name, 0.0))] for name in SIZES])
    false = np.zeros(1, dtype=bool)
    kinds = Kinds(
        work=np.array([Work.ATTENTION_BACKWARD if backward else Work.ATTENTION]),
        item=np.array([item]),
        is_bf16=~false,
        is_winograd=false,
        is_unaligned=false,
        is_masked=false | causal,
        group_width=np.ones(1),
    )
    coefficients = shipped().coefficients
    limits = ceilings(DeviceFigures.of(device), coefficients)
    plan = plan_of(kinds, limits, coefficients, layout="nchw", tf32=True, attention=kernels)
    return float(kernel_seconds(plan, full).seconds[0])


class Attention(torch.nn.Module):
    def __init__(self, is_causal):
        super().__init__()
        self.is_causal, self.weight = is_causal, torch.nn.Parameter(torch.zeros(1, device="meta"))

    def forward(self, x):
        return scaled_dot_product_attention(x * self.weight, x, x, is_causal=self.is_causal)


@pytest.mark.parametrize(("is_causal", "share"), [(False, 1.0), (True, 0.5)])
def test_a_causal_mask_leaves_half_of_the_pairs_both_ways(is_causal, share):
    trace = tc.capture(Attention(is_causal), lambda batch: torch.zeros(batch, 4, 128, 64))
    table = kernel_table(lower(trace, settings=Settings("bf16", "none")))
    forward, backward = (
        table.sizes(np.array([2]))[0, SIZE["flop"], table.kinds.work == work].sum()
        for work in (Work.ATTENTION, Work.ATTENTION_BACKWARD)
    )
    # 2 x 4 heads of 128 x 128 pairs, each 64 + 64 multiply-adds forward and five products of 64 backward.
    assert forward == pytest.approx(share * 8 * 128 * 128 * 128 * 2)
    assert backward == pytest.approx(share * 8 * 128 * 128 * 5 * 64 * 2)


def test_long_causal_attention_takes_half_as_long_and_short_more_than_half():
    long, short = (
        attention_s(H100, tokens=tokens, causal=True) / attention_s(H100, tokens=tokens) for tokens in (65536, 1024)
    )
    assert 0.5 < long < 0.55
    assert 0.55 < short < 1.0


def test_kernels_written_for_ampere_fall_behind_on_hopper_and_nobody_runs_them_on_blackwell():
    behind = [
        attention_s(device, causal=True, kernels="eager") / attention_s(device, causal=True)
        for device in (A100, H100, B200)
    ]
    assert 1.0 < behind[0] < behind[1]
    assert behind[2] == pytest.approx(1.0)


def test_eight_bits_save_less_than_half_because_scores_stay_scalar_work():
    assert 0.5 < attention_s(H100, item=1) / attention_s(H100, item=2) < 0.9


def test_small_heads_reach_a_smaller_rate():
    per_flop = [attention_s(H100, size=size) / size for size in (64, 128)]
    assert per_flop[0] > per_flop[1]


def test_one_head_leaves_most_processors_without_work():
    assert attention_s(H100, heads=1, tokens=1024) > 4 * attention_s(H100, heads=64, tokens=1024) / 64
