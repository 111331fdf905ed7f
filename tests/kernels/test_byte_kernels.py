"""Kernels that move bytes: norms, losses, embeddings, uneven operands."""

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest
import torch

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.kernels.byte_kernels import SORTING_KERNELS
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import prior_coefficients
from traincast.kernels.kernels_of import SIZE, kernels_of
from traincast.kernels.refit.modern.byte_blocks import byte_blocks
from traincast.kernels.refit.modern.kernel_row import KernelRow, block_of, moved
from traincast.kernels.work import Work
from traincast.trace.lowering.fuse import fuse
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

PRIORS = prior_coefficients()
SIMPLE = PRIORS.values | {"dram": 0.0, "launch_s": -50.0, "l2_rate.bytes": 20.0}


def timed(*calls, device="A100-SXM4-80GB"):
    return KernelRow(
        file="", source="", kernel="", device=device, precision="bf16", direction="forward", backend="",
        seconds=1.0, calls=calls, shape="",
    )  # fmt: skip


def seconds(*calls, is_cold=True, values=SIMPLE, device="A100-SXM4-80GB"):
    block = block_of("made up", [timed(*calls, device=device)], is_cold=is_cold)
    return float(block.predict(replace(PRIORS, values=values))[0])


def works(net, example, precision="bf16", batch=8):
    graph = lower(tc.capture(net, example, optimizer="sgd"), settings=Settings(precision, "none"))
    return [(kernel.work, kernel.sizes) for kernels in kernels_of(graph, np.array([batch])) for kernel in kernels]


def test_what_a_cleared_cache_does_not_hold_takes_the_bandwidth_and_what_was_just_written_less():
    megabyte = moved(Work.ELEMENTWISE, 1e6, precision="bf16")

    assert seconds(megabyte) == pytest.approx(1e6 / 2.039e12)
    assert seconds(megabyte, is_cold=False) < 0.1 * seconds(megabyte)
    assert seconds(megabyte, megabyte) == pytest.approx(seconds(megabyte), rel=0.1)  # only the first is cold


@pytest.mark.parametrize("work", [Work.UNEVEN, Work.CAST])
def test_elements_that_are_taken_one_at_a_time_wait_for_clocks_or_for_bytes_whichever_take_longer(work):
    values = SIMPLE | {"element_clocks": np.log(1.08 * 1.41)}  # of 108 processors with 1.41 GHz: 1e-11 s an element

    few_bytes, many_bytes = (moved(work, n_bytes, precision="bf16", turns=1e9) for n_bytes in (2.039e8, 2.039e11))

    assert seconds(few_bytes, values=values) == pytest.approx(1e9 * 1e-11, rel=0.01)
    assert seconds(many_bytes, values=values) == pytest.approx(2.039e11 / 2.039e12, rel=0.01)


def test_the_same_uneven_operands_cost_stacked_memory_more_than_their_bytes_and_gddr_hardly():
    values = SIMPLE | {"element_clocks": np.log(0.6)}
    uneven = moved(Work.UNEVEN, 4e9, precision="bf16", turns=1e9)
    over_bytes = {
        device: seconds(uneven, values=values, device=device) * find_device(device).memory_bytes_per_s / 4e9
        for device in ("A100-SXM4-80GB", "H100-SXM5-80GB", "RTX-4090")
    }

    # 0.6 clocks of 108 x 1.41 GHz and 132 x 1.98 GHz an element are 3.9 and 2.3 ps; its four bytes take 2.0 and 1.2.
    assert over_bytes["A100-SXM4-80GB"] == pytest.approx(np.cbrt(1 + (3.94 / 1.96) ** 3), rel=0.01)
    assert over_bytes["H100-SXM5-80GB"] == pytest.approx(np.cbrt(1 + (2.30 / 1.19) ** 3), rel=0.01)
    assert over_bytes["RTX-4090"] < 1.05


@pytest.mark.parametrize(
    ("work", "clocks"),
    [
        (Work.DROPOUT, "dropout_clocks"),
        (Work.BATCH_NORM, "batch_norm_clocks"),
        (Work.BATCH_NORM_BACKWARD, "batch_norm_clocks.backward"),
    ],
)
def test_dropout_and_batch_norm_wait_for_clocks_or_for_bytes_whichever_take_longer(work, clocks):
    values = SIMPLE | {clocks: np.log(1.08 * 1.41), f"passes.{work.name.lower()}": np.log(1.5)}

    few_bytes, many_bytes = (moved(work, n_bytes, precision="bf16", turns=1e9) for n_bytes in (2.039e8, 2.039e11))

    assert seconds(few_bytes, values=values) == pytest.approx(1e9 * 1e-11, rel=0.01)
    assert seconds(many_bytes, values=values) == pytest.approx(1.5 * 2.039e11 / 2.039e12, rel=0.01)


def test_batch_norm_takes_no_clocks_of_its_own_where_channels_come_last():
    values = SIMPLE | {"batch_norm_clocks": np.log(100.0), "passes.batch_norm": 0.0, "batch_norm.nhwc": 0.0}
    block = block_of("made up", [timed(moved(Work.BATCH_NORM, 2.039e9, precision="bf16", turns=1e9))], is_cold=True)

    by_layout = [
        float(replace(block, layout=layout).predict(replace(PRIORS, values=values))[0]) for layout in ("nchw", "nhwc")
    ]

    assert by_layout == pytest.approx([1e9 * 100 / (108 * 1.41e9), 1e-3], rel=0.01)


def test_dropout_draws_a_number_an_element_and_its_gradient_meets_a_mask_of_another_dtype():
    net, example = torch.nn.Dropout(0.5), torch.zeros(2, 1000, requires_grad=True)
    halves, singles = (
        [
            (work, sizes[SIZE["b"]])
            for work, sizes in works(torch.nn.Sequential(torch.nn.Linear(1000, 1000), net), example, precision)
        ]
        for precision in ("bf16", "fp32")
    )

    for found in (halves, singles):
        assert (Work.DROPOUT, (8 * 1000.0,)) in found
    assert (Work.UNEVEN, (8 * 1000.0,)) in halves
    assert Work.UNEVEN not in [work for work, _ in singles]


def test_rows_of_a_table_are_looked_up_by_1024_threads_a_processor_that_wait_twice_each():
    values = SIMPLE | {"passes.embedding": 0.0, "label_wait_s": np.log(1e-6)}
    lookups = moved(Work.EMBEDDING, 0.0, precision="fp32", turns=10 * 108 * 1024.0)

    assert seconds(lookups, values=values) == pytest.approx(10e-6)


def test_a_sort_comes_before_the_gradient_of_a_table_and_is_fourteen_launches():
    values = SIMPLE | {"launch_s": np.log(1e-6)}

    assert seconds(
        moved(Work.EMBEDDING_BACKWARD, 0.0, precision="fp32", turns=SORTING_KERNELS), values=values
    ) == pytest.approx(15e-6)


def test_rows_of_a_norm_take_clocks_however_short_they_are():
    values = SIMPLE | {"passes.rms_norm": 0.0, "norm_row_clocks": np.log(100.0)}
    device = find_device("A100-SXM4-80GB")
    row_s = 100.0 / ceilings(DeviceFigures.of(device), PRIORS).clocks_per_s

    few, many = (moved(Work.RMS_NORM, 1e6, precision="bf16", turns=turns) for turns in (1000.0, 11000.0))

    assert seconds(many, values=values) - seconds(few, values=values) == pytest.approx(10_000 * row_s)
    assert row_s == pytest.approx(100 / (108 * 1.41e9), rel=0.01)


def test_labels_of_a_loss_wait_for_each_other_on_any_device():
    values = SIMPLE | {"label_wait_s": np.log(1e-6)}

    assert seconds(moved(Work.LABEL_LOSS, 0.0, precision="fp32", turns=16.0), values=values) == pytest.approx(16e-6)


class Tokens(torch.nn.Module):
    """A table of 100 rows of 64 numbers, and a norm."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 64)
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, tokens):
        return self.norm(self.table(tokens))


def test_the_gradient_of_a_table_is_zeros_and_the_rows_put_into_it():
    found = works(Tokens(), torch.zeros(2, 16, dtype=torch.long), batch=8)
    table, rows = 100 * 64 * 2, 8 * 16 * 64 * 2

    by_work = {work: sizes for work, sizes in found}
    assert by_work[Work.EMBEDDING_BACKWARD][SIZE["bytes"]] == (rows,)
    assert by_work[Work.EMBEDDING_BACKWARD][SIZE["b"]] == (SORTING_KERNELS,)
    assert by_work[Work.EMBEDDING][SIZE["b"]] == (8 * 16 * 64,)  # an element a lookup
    assert (Work.FACTORY, table) in [(work, sizes[SIZE["bytes"]][0]) for work, sizes in found]
    assert by_work[Work.LAYER_NORM][SIZE["b"]] == (8 * 16,)  # a row a token
    assert by_work[Work.LAYER_NORM_BACKWARD][SIZE["b"]] == (8 * 16,)


class Scaled(torch.nn.Module):
    """Each feature times a weight of its own, then doubled."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        return (x * self.weight) * 2.0


@pytest.mark.parametrize(("precision", "uneven"), [("bf16", 1), ("fp32", 0)])
def test_a_weight_a_feature_makes_16_bit_operands_uneven_and_leaves_fp32_as_it_is(precision, uneven):
    graph = lower(tc.capture(Scaled(), torch.zeros(2, 16, 64), mode="inference"), settings=Settings(precision, "none"))
    found = [kernel.work for kernels in kernels_of(graph, np.array([8])) for kernel in kernels]

    assert found.count(Work.UNEVEN) == uneven
    elements = [
        kernel.sizes[SIZE["b"]]
        for kernels in kernels_of(graph, np.array([8]))
        for kernel in kernels
        if kernel.work == Work.UNEVEN
    ]
    assert elements == [(8 * 16 * 64,)] * uneven
    assert found.count(Work.ELEMENTWISE) == 2 - uneven
    compiled = [kernel.work for kernels in kernels_of(fuse(graph), np.array([8])) for kernel in kernels]
    assert compiled == [Work.ELEMENTWISE]  # one kernel, which loads as it likes


@pytest.mark.parametrize(("reduction", "first"), [("mean", Work.LABEL_LOSS), ("none", Work.REDUCTION)])
def test_the_loss_of_labels_reads_a_value_a_row_and_its_gradient_is_written_once(reduction, first):
    def loss(output, _):
        labels = torch.zeros(output.shape[0], dtype=torch.long)
        return torch.nn.functional.cross_entropy(output, labels, reduction=reduction).sum()

    graph = lower(tc.capture(torch.nn.Linear(8, 50), torch.zeros(2, 8), loss=loss), settings=Settings("fp32", "none"))
    kernels = dict(zip(map(graph.name_of, range(graph.n_ops)), kernels_of(graph, np.array([32])), strict=True))

    (forward,), (backward,) = kernels["aten.nll_loss_forward"], kernels["aten.nll_loss_backward"]
    assert forward.work == first
    assert forward.sizes[SIZE["bytes"]][0] < 32 * 50 * 4
    assert backward.work == Work.FACTORY
    assert backward.sizes[SIZE["bytes"]][0] == pytest.approx(32 * 50 * 4, rel=0.1)


def byte_files(tmp_path, rows):
    usual = dict.fromkeys(("flag", "note", "tflops", "gbps", "memory_MB", "framework"), "") | {
        "source": "",
        "grade": "A",
    }
    (tmp_path / "modern").mkdir()
    for file in ("kernels_liger.csv.gz", "kernels_cudnn.csv.gz"):
        lines = [usual | row for name, row in rows if name == file]
        with gzip.open(tmp_path / "modern" / file, "wt", newline="") as stream:
            writer = csv.DictWriter(stream, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    return tmp_path


def test_blocks_of_byte_kernels_leave_out_rows_that_show_the_host_and_tell_tuned_kernels_apart(tmp_path):
    norm = {"kernel": "rms_norm", "device": "H200-SXM5-141GB", "precision": "bfloat16", "direction": "fwd"}
    large, small = '{"N":16384,"C":4096}', '{"N":64,"C":128}'
    silu = {"kernel": "relu_squared", "device": "H100-SXM5-80GB", "precision": "torch.bfloat16", "backend": "torch"}
    silu |= {"direction": "forward", "shape": '{"M":4096,"N":"16384"}', "time_us": "185"}
    data = byte_files(
        tmp_path,
        [
            ("kernels_cudnn.csv.gz", norm | {"backend": "pytorch", "shape": large, "time_us": "80"}),
            ("kernels_cudnn.csv.gz", norm | {"backend": "pytorch", "shape": small, "time_us": "3"}),
            ("kernels_cudnn.csv.gz", norm | {"backend": "cudnn", "shape": large, "time_us": "72"}),
            ("kernels_liger.csv.gz", silu),
        ],
    )

    eager, tuned = byte_blocks(data)

    assert eager.tags["family"].tolist() == ["fused norm", "activation"]
    assert eager.tags["least_s"][0] == pytest.approx(2 * 2 * 16384 * 4096 / 4.8e12)
    assert eager.is_cold.tolist() == [True, True, False]  # the second op of the activation finds what the first wrote
    assert tuned.kernels.work.tolist() == [Work.TUNED_NORM]


def test_pytorchs_own_rms_norm_is_one_kernel_each_way_and_ops_of_ones_own_stay_ops():
    class OwnNorm(torch.nn.RMSNorm):
        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    found = {
        norm: [
            work for work, _ in works(torch.nn.Sequential(torch.nn.Linear(64, 64), norm(64)), torch.zeros(2, 16, 64))
        ]
        for norm in (torch.nn.RMSNorm, OwnNorm)
    }

    assert [found[torch.nn.RMSNorm].count(work) for work in (Work.RMS_NORM, Work.RMS_NORM_BACKWARD)] == [1, 1]
    assert not {Work.RMS_NORM, Work.RMS_NORM_BACKWARD} & set(found[OwnNorm])
    assert len(found[OwnNorm]) > len(found[torch.nn.RMSNorm]) + 10


def test_an_update_of_a_list_takes_a_turn_for_each_tensor_that_is_on_the_device():
    trace = tc.capture(torch.nn.Linear(64, 32), torch.zeros(2, 64), optimizer="adam")
    graph = lower(trace, settings=Settings("fp32", "adam"))
    kernels = dict(zip(map(graph.name_of, range(graph.n_ops)), kernels_of(graph, np.array([8])), strict=True))
    values = SIMPLE | {"passes.optimizer": 0.0, "list_tensor_s": np.log(1e-6)}

    (lerp,) = kernels["aten._foreach_lerp_"]
    assert lerp.sizes[SIZE["b"]] == (2,)  # weight and bias
    assert lerp.sizes[SIZE["bytes"]] == (3 * 4 * (64 * 32 + 32),)
    step = next(op for op in range(graph.n_ops) if graph.name_of(op) == "aten._foreach_add_")
    (count,) = list(kernels_of(graph, np.array([8])))[step]
    assert count.sizes[SIZE["b"]] == (0,)
    update = moved(Work.OPTIMIZER, 2.039e9, precision="fp32", turns=100.0)
    assert seconds(update, values=values) == pytest.approx(1e-3 + 100e-6)
