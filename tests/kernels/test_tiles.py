"""How libraries cut products into tiles, and what Winograd's algorithms make of 3 x 3 convolutions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.hardware.catalog import find_device
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import shipped
from traincast.kernels.kernels_of import SIZES, patches_in_blocks
from traincast.kernels.seconds import kernel_seconds, plan_of
from traincast.kernels.tiles import TILING, Cutting, pairs_of, tile_seconds
from traincast.kernels.ways import Kinds
from traincast.kernels.work import Work

V100 = find_device("V100-PCIe-32GB")
COEFFICIENTS = shipped().coefficients
LIMITS = ceilings(DeviceFigures.of(V100), COEFFICIENTS)


def cutting(tiling, **changes):
    base = {
        "item_bytes": 4.0,
        "is_on_matrix": False,
        "reached_flop_per_s": 1e13,
        "least_depth": np.inf,
        "start_up": 0.0,
        "loss": 0.0,
        "lone": 0.0,
    }
    return Cutting(
        **{name: np.array([value]) for name, value in (base | changes).items()}, tiling=np.array([TILING[tiling]])
    )


def seconds(m, n, k, how):
    fast_cache = replace(LIMITS, l2_tile_bytes_per_s=1e30)
    pairs = pairs_of(how, fast_cache)
    shapes = np.array([[1.0, m, n, k, 0.0]]).T.repeat(len(pairs.kernel), axis=1)
    return float(tile_seconds(shapes, pairs).seconds[0])


def convolution_seconds(n_images, size, c_in, c_out, *, device=V100):
    places = n_images * size * size
    sizes = {
        "m": places,
        "n": c_out,
        "k": 9 * c_in,
        "flop": 18.0 * places * c_in * c_out,
        "bytes": 4.0 * (places * (c_in + c_out) + 9 * c_in * c_out),
        "patches_2": n_images * patches_in_blocks(np.array([size, size])),
        "patches_4": n_images * np.ceil(size / 4) ** 2,
    }
    full = {name: np.array([sizes.get(name, 1.0 if name == "b" else 0.0)], dtype=float) for name in SIZES}
    flag = np.zeros(1, dtype=bool)
    kinds = Kinds(
        work=np.array([Work.CONVOLUTION]),
        item=np.array([4]),
        is_bf16=flag,
        is_winograd=~flag,
        is_unaligned=flag,
        is_masked=flag,
        group_width=full["n"],
    )
    limits = ceilings(DeviceFigures.of(device), COEFFICIENTS)
    plan = plan_of(kinds, limits, COEFFICIENTS, layout="nchw", tf32=False)
    return float(kernel_seconds(plan, np.stack(list(full.values()))).seconds[0])


@pytest.mark.parametrize(
    ("size", "patches"),
    [
        (16, 64),  # 8 x 8 patches: two blocks of 4 x 8
        (10, 40),  # 5 x 5: five rows of 8, four images share a block
        (7, 16),  # 4 x 4: half a block of two images
        (28, 224),  # 14 x 14: seven rows of blocks of 2 x 8, two to a row
    ],
)
def test_fused_winograd_kernels_take_32_patches_at_a_time_cut_as_fits_best(size, patches):
    assert patches_in_blocks(np.array([size, size])) == patches


@given(st.integers(1, 300), st.integers(1, 300))
def test_blocks_hold_every_patch(height, width):
    patches = np.ceil(height / 2) * np.ceil(width / 2)
    assert patches <= patches_in_blocks(np.array([height, width])) <= 8 * patches


def test_a_product_pays_for_whole_tiles_and_whole_waves():
    """128 x 64 tiles on 80 processors: one tile more than a wave takes two waves' time while there are few."""
    pascal = cutting("batched_pascal")
    full = seconds(64 * 80, 128, 4096, pascal)
    assert seconds(64 * 79 + 1, 128, 4096, pascal) == pytest.approx(full)
    assert full == pytest.approx(80 * 2 * 64 * 128 * 4096 / 1e13)
    assert seconds(64 * 80 + 1, 128, 4096, pascal) > 1.7 * full


def test_only_tiles_on_offer_are_taken():
    """40 columns fit a tile of 64 better than one of 128, where there is one."""
    few_columns = {how: seconds(20_000, 40, 2048, cutting(how)) for how in ("any", "batched_volta", "batched_pascal")}
    assert few_columns["any"] <= few_columns["batched_volta"] < 0.7 * few_columns["batched_pascal"]


def test_smaller_tiles_reach_less_and_the_first_waves_hide_no_latency():
    best = seconds(4096, 4096, 4096, cutting("winograd_fused"))
    assert seconds(4096, 4096, 4096, cutting("winograd_fused", loss=-0.1)) == pytest.approx(best * np.exp(0.4))
    lone = seconds(4096, 4096, 4096, cutting("winograd_fused", lone=1.0))
    waves = 4096 * 4096 / (32 * 32) / V100.n_sm
    assert lone == pytest.approx(best * (1 + 1 / waves), rel=0.01)


def test_winograd_goes_by_32_channels_where_few_patches_leave_no_other_way():
    """From 32 to 33 output channels the fused kernel doubles its blocks."""
    assert convolution_seconds(8, 64, 256, 33) > 1.2 * convolution_seconds(8, 64, 256, 32)
    assert convolution_seconds(8, 64, 256, 32) == pytest.approx(convolution_seconds(8, 64, 256, 25), rel=0.1)


def test_large_3x3_convolutions_pass_the_peak_of_their_definition():
    """As the measured ones do, by up to 2.2 times, with sizes that fit tiles less well than this one."""
    flop = 18.0 * 64 * 32 * 32 * 512 * 512
    reached = flop / convolution_seconds(64, 32, 512, 512) / V100.fp32_flop_per_s
    assert 1.2 < reached < 2.6


@given(st.integers(1, 64), st.integers(4, 100), st.integers(1, 800), st.integers(1, 800))
def test_more_images_or_channels_never_take_less(n_images, size, c_in, c_out):
    base = convolution_seconds(n_images, size, c_in, c_out)
    for more in (
        (n_images + 7, size, c_in, c_out),
        (n_images, size, c_in + 9, c_out),
        (n_images, size, c_in, c_out + 9),
    ):
        assert convolution_seconds(*more) >= base * (1 - 1e-9)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 64, 64), (64, 0, 64), (64, 64, 0), (0, 0, 0)])
def test_an_empty_product_takes_a_moment_and_never_an_undefined_time(m, n, k):
    found = seconds(m, n, k, cutting("any"))
    assert 0 <= found <= seconds(64, 64, 64, cutting("any"))
