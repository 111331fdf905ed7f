"""Kernel files of the modern measurements, on tables that are made up here."""

import csv
import gzip
import json

import numpy as np
import pytest

from traincast.kernels.coefficients import shipped
from traincast.kernels.refit.modern import eager_ops
from traincast.kernels.refit.modern.cudnn_file import cudnn_rows
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.modern.kernel_files import lone_log_sd
from traincast.kernels.refit.modern.kernel_row import ask_anyway, askable, block_of, moved, product, reasons
from traincast.kernels.refit.modern.liger_file import liger_rows
from traincast.kernels.refit.modern.product_files import ceiling_rows, misc_rows, xla_rows
from traincast.kernels.refit.modern_sets import is_usual_attention
from traincast.kernels.work import Work


@pytest.fixture
def write(tmp_path):
    """Writes rows, with what every kernel file has, as a table among the modern ones."""

    def written(file, rows):
        usual = dict.fromkeys(("flag", "note", "tflops", "gbps", "memory_MB", "framework", "backend"), "")
        usual |= {"source": "made up", "grade": "A", "direction": "fwd", "device": "H100-SXM5-80GB", "kernel": "gemm"}
        lines = [usual | {k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in rows]
        path = tmp_path / "modern" / file
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt", newline="") as stream:
            writer = csv.DictWriter(stream, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
        return tmp_path

    return written


def test_a_bf16_product_can_be_asked_and_an_fp8_one_is_counted_as_not_asked(write):
    shape = {"B": 1, "M": 256, "N": 512, "K": 1024}
    data = write(
        "gemm_xla.csv.gz",
        [
            {"precision": "bf16xbf16->bf16", "shape": shape, "time_us": "10"},
            {"precision": "f8e4m3fnxf8e5m2->bf16", "shape": shape, "time_us": "5", "device": "B200"},
            {"precision": "f32xf32->f32", "shape": shape, "time_us": "20"},
        ],
    )

    rows = xla_rows(data)

    assert [row.precision for row in askable(rows)] == ["bf16"]
    assert reasons(rows)["fp8"] == 1
    assert sum(reasons(rows).values()) == 2
    (call,) = rows[0].calls
    assert call.shape == (1, 256, 512, 1024)
    assert call.flop == 2 * 256 * 512 * 1024
    assert call.bytes == 2 * (256 * 1024 + 1024 * 512 + 256 * 512)
    assert rows[1].calls[0].bytes == 256 * 1024 + 1024 * 512 + 2 * 256 * 512  # an fp8 product makes bf16
    assert rows[0].seconds == pytest.approx(10e-6)


def test_rates_without_sizes_cannot_be_asked_nor_taught(write):
    shape = {"d_hidden": 4096, "d_ff": 11008}
    row = {"kernel": "swiglu mlp fwd (3 matmuls)", "precision": "bf16", "shape": shape, "time_us": ""}
    rows = ceiling_rows(write("gemm_ceilings_stas.csv.gz", [row]))

    assert reasons(rows) == {"number of tokens not told": 1}
    assert ask_anyway(rows) == []


def test_a_grouped_product_both_ways_is_three_batched_products_with_the_flop_that_the_source_counts(write):
    row = {"precision": "bf16", "shape": {"M": 1024, "N": 512, "K": 256, "G": 4}, "direction": "fwd+bwd"}
    (found,) = misc_rows(write("kernels_misc.csv.gz", [row | {"time_us": "1", "device": "B200"}]))

    assert [call.work for call in found.calls] == [Work.BATCHED] * 3
    assert sum(call.flop for call in found.calls) == 3 * 2 * 1024 * 512 * 256
    assert found.direction == "full"


def test_attention_backward_has_five_products_and_a_causal_mask_leaves_half_of_the_pairs(write):
    shape = {"b": 1, "q": 1000, "kv": 1000, "hq": 8, "hkv": 2, "d_qk": 128, "d_v": 128}
    usual = {"kernel": "attention", "precision": "bfloat16", "time_us": "1", "device": "H200-SXM5-141GB"}
    data = write(
        "kernels_cudnn.csv.gz",
        [
            usual | {"shape": shape | {"mask": "top_left", "window": ""}},
            usual | {"shape": shape | {"mask": "top_left", "window": ""}, "direction": "bwd_deterministic"},
            usual | {"shape": shape | {"mask": "top_left", "window": "100"}},
            usual | {"shape": shape | {"mask": "no_mask", "window": ""}, "device": "GB-of-tomorrow"},
        ],
    )

    forward, backward, window, unknown = cudnn_rows(data)

    assert forward.calls[0].flop == 4 * 8 * 1000 * 1000 * 128
    assert backward.calls[0].flop == 2.5 * forward.calls[0].flop
    assert forward.kept_fraction == pytest.approx(0.5, abs=1e-3)
    assert window.kept_fraction == pytest.approx(0.1, abs=6e-3)
    assert window.reason == "attention in a sliding window"
    assert forward.device_name == "H200-SXM"
    assert not forward.reason
    assert unknown.reason == "no such device yet: GB-of-tomorrow"


def test_backward_kernels_in_8_bits_that_ignore_a_window_leave_the_fit_and_say_why(write):
    shape = {"b": 1, "q": 1024, "kv": 1024, "hq": 8, "hkv": 8, "d_qk": 64, "d_v": 64, "mask": "top_left"}
    usual = {"kernel": "attention", "device": "GB200", "backend": "cudnn", "time_us": "10"}
    rows = cudnn_rows(
        write(
            "kernels_cudnn.csv.gz",
            [
                usual | {"precision": precision, "direction": direction, "shape": shape | {"window": window}}
                for precision, direction, window in (
                    ("fp8", "bwd", "128"), ("fp8", "bwd", ""), ("fp8", "fwd", "128"), ("bfloat16", "bwd", "128")
                )
            ],
        )
    )  # fmt: skip

    assert [is_usual_attention(row) for row in rows] == [False, True, True, True]
    assert "outside the window" in rows[0].tags["doubt"]


def test_liger_kernels_are_not_asked_but_can_be_taught_and_memory_rows_have_no_seconds(write):
    shape = {"M": 2048, "H": "4096", "dtype": "torch.bfloat16"}
    usual = {"kernel": "rms_norm", "precision": "torch.bfloat16", "shape": shape, "direction": "forward"}
    data = write(
        "kernels_liger.csv.gz",
        [
            usual | {"backend": "huggingface", "time_us": "100"},
            usual | {"backend": "liger", "time_us": "30"},
            usual | {"backend": "liger", "time_us": "", "memory_MB": "64"},
        ],
    )

    eager, fused, memory = liger_rows(data)

    assert askable([eager, fused, memory]) == [eager]
    assert [call.work for call in fused.calls] == [Work.TUNED_NORM]
    assert fused.calls[0].bytes == 2 * 2 * 2048 * 4096 < sum(call.bytes for call in eager.calls)
    assert memory.memory_bytes == 64 * 2**20
    assert np.isnan(memory.seconds)


def test_both_directions_of_a_layer_together_are_its_full_pass():
    layer = eager_ops.gated_mlp(1024, 256, 512, "bf16")

    assert layer.of("full") == layer.of("forward") + layer.of("backward")
    products = [call.flop for call in layer.of("full") if call.flop]
    assert len(products) == 9
    assert set(products) == {2 * 1024 * 256 * 512}


def test_a_block_predicts_a_row_of_several_kernels_as_their_sum(write):
    shape = {"M": 65536, "N": 4096, "dtype": "torch.bfloat16"}
    row = {"kernel": "relu_squared", "precision": "torch.bfloat16", "shape": shape, "backend": "torch", "time_us": "9"}
    rows = liger_rows(
        write("kernels_liger.csv.gz", [row | {"direction": each} for each in ("forward", "backward", "full")])
    )
    block = block_of("made up", rows)

    forward, backward, full = block.predict(shipped().coefficients)

    assert full == pytest.approx(forward + backward)
    assert block.tags["direction"].tolist() == ["forward", "backward", "full"]
    lone = shipped().kernel_log_sd[4]  # all of one group: its own spread
    assert lone_log_sd(block, shipped()) == pytest.approx([lone] * 3)


def test_odd_rows_of_products_are_told_apart_and_bytes_never_are():
    assert product(64, 10922, 4096, precision="bf16").is_unaligned
    assert not product(64, 10944, 4096, precision="bf16").is_unaligned
    assert not moved(Work.COPY, 3.0, precision="bf16").is_unaligned


@pytest.mark.parametrize(
    ("written", "name"),
    [("NVIDIA B200 SXM", "B200"), ("A100-SXM4", "A100-SXM4-80GB"), ("H100", None), ("H100 (someone's)", None)],
)
def test_devices_are_known_by_the_name_that_means_one_of_them(written, name):
    assert known_device(written) == name
