"""Fused attention: the pairs that a mask leaves, tuned kernels and PyTorch's own, few and many heads."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import Coefficients, shipped
from traincast.kernels.kernels_of import SIZE, SIZES, bytes_around_backward
from traincast.kernels.seconds import kernel_seconds, plan_of
from traincast.kernels.table import kernel_table
from traincast.kernels.ways import Kinds
from traincast.kernels.work import Work
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

A100, H100, B200 = (find_device(name) for name in ("A100-SXM4-80GB", "H100-SXM5-80GB", "B200"))


def attention_s(
    device, *, tokens=16384, heads=64, size=128, causal=False, window=None, backward=False, item=2, kernels="tuned",
    around=0.0, **values,
):  # fmt: skip
    """Of one call over all heads. `values` are coefficients other than the shipped ones, the dot an underscore."""
    pairs = heads * tokens * (window or tokens * (0.5 if causal else 1.0))
    sizes = {
        "b": heads,
        "m": tokens,
        "n": 2 * size,
        "k": tokens,
        "flop": pairs * 2 * size * (5 if backward else 2),
        "bytes": 4.0 * heads * tokens * size * item,
        "image": around,
    }
    full = np.array([[float(sizes.get(name, 0.0))] for name in SIZES])
    false = np.zeros(1, dtype=bool)
    kinds = Kinds(
        work=np.array([Work.ATTENTION_BACKWARD if backward else Work.ATTENTION]),
        item=np.array([item]),
        is_bf16=~false,
        is_winograd=false,
        is_unaligned=false,
        is_masked=false | causal | (window is not None),
        group_width=np.ones(1),
    )
    changed = {f"attention.{name}": value for name, value in values.items()}
    coefficients = Coefficients(shipped().coefficients.values | changed)
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


def test_backward_kernels_of_pytorch_fall_further_behind_than_forward_ones():
    """Five products a pair backward, two forward."""
    like_products = [
        attention_s(A100, causal=True, kernels="eager", backward=True, eager_backward=value)
        / attention_s(A100, causal=True, kernels="eager", eager_backward=value)
        for value in (0.0, np.log(0.5))
    ]
    assert like_products == pytest.approx([2.5, 5.0], rel=0.05)


def test_eight_bits_save_less_than_half_because_scores_stay_scalar_work():
    assert 0.5 < attention_s(H100, item=1) / attention_s(H100, item=2) < 0.9


def test_small_heads_reach_a_smaller_rate():
    per_flop = [attention_s(H100, size=size) / size for size in (64, 128)]
    assert per_flop[0] > per_flop[1]


def test_one_head_leaves_most_processors_without_work():
    assert attention_s(H100, heads=1, tokens=1024) > 4 * attention_s(H100, heads=64, tokens=1024) / 64


NOTHING = {"tile_s": -50.0, "start_s": -50.0}  # seconds, as logarithms


def test_a_window_touches_a_tile_of_keys_more_than_its_width():
    narrow, wide = (attention_s(H100, window=window, **NOTHING) for window in (1024, 4096))

    assert narrow / wide == pytest.approx((1024 + 128) / (4096 + 128), rel=0.02)


def test_a_causal_mask_touches_half_a_tile_of_keys_more_than_it_leaves():
    causal, all_pairs = (attention_s(H100, tokens=2048, heads=1056, causal=mask, **NOTHING) for mask in (True, False))

    assert causal / all_pairs == pytest.approx((1024 + 64) / 2048, rel=0.02)


def test_each_tile_of_rows_takes_its_start_on_one_of_the_processors():
    without, with_start = (
        attention_s(H100, tokens=1280, heads=132, tile_s=tile_s, start_s=-50.0) for tile_s in (-50.0, np.log(1e-6))
    )

    assert with_start - without == pytest.approx(10e-6, rel=0.05)  # ten tiles a head, a head a processor


def test_backward_takes_products_and_scalar_work_in_turns_where_shared_memory_holds_no_second_tile():
    rates = {"tuned": 0.0, "pair_flop_backward": np.log(1280.0), **NOTHING}
    narrow, wide, wide_in_8_bits = (
        attention_s(B200, tokens=2048, size=size, item=item, backward=True, **rates)
        for size, item in ((128, 2), (192, 2), (192, 1))
    )

    # Scalar work is 1,280 flop a pair, products 1,280 and 1,920; in 8 bits those take half as long.
    assert wide / narrow == pytest.approx((1920 + 1280) / np.hypot(1280, 1280), rel=0.15)
    assert wide_in_8_bits / narrow == pytest.approx(np.hypot(960, 1280) / np.hypot(1280, 1280), rel=0.15)


def test_kernels_around_the_backward_pass_take_the_time_of_their_bytes():
    more = attention_s(H100, backward=True, around=1e9) - attention_s(H100, backward=True)

    assert more == pytest.approx(1e9 / (3.35e12 * np.exp(shipped().coefficients["dram"])), rel=0.001)


def test_gradients_of_queries_pass_in_fp32_and_those_of_shared_keys_once_a_head():
    alone = bytes_around_backward(8, 8, (10, 10), (64, 64), item_bytes=2)
    shared = bytes_around_backward(8, 2, (10, 10), (64, 64), item_bytes=2)

    assert alone == 8 * 10 * (3 * 4 * 64 + 2 * 2 * 64)
    assert shared - alone == 8 * 10 * (64 + 64) * 4
