"""One step in several variants, compared no more sharply than the spread allows."""

import pytest
import torch
from torch import nn

from sweep_samples import measured, runnable
from traincast.errors import InputError
from traincast.measurement.sweeps.norm import without_batch_norm
from traincast.measurement.sweeps.variants import (
    VariantRow,
    VariantSweep,
    sweep_devices,
    sweep_norm,
    sweep_precisions,
    sweep_variants,
    variant,
)

torch.set_num_threads(1)


def normed():
    inner = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4))
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), inner, nn.Flatten(), nn.Linear(144, 10))


def images(batch_size):
    return (torch.zeros(batch_size, 3, 8, 8),)


def linear():
    return runnable(nn.Linear(4, 2), lambda batch_size: (torch.zeros(batch_size, 4),))


def sweep_of(*rows, what="compile"):
    return VariantSweep(what=what, model="m", batch_size=8, rows=rows)


def row(label, step_s, spread=0.01, compile_s=None):
    return VariantRow(label=label, measurement=measured(step_s, spread=spread), compile_s=compile_s)


def test_every_batch_norm_passes_its_input_on_in_a_copy_and_the_model_keeps_its_own():
    original = runnable(normed(), images)
    bare, n_replaced = without_batch_norm(original)
    assert n_replaced == 2
    assert not [each for each in bare.module.modules() if isinstance(each, nn.BatchNorm2d)]
    assert len([each for each in original.module.modules() if isinstance(each, nn.BatchNorm2d)]) == 2
    assert bare.forward(bare.module, images(2)).shape == (2, 10)


def test_a_model_that_is_a_batch_norm_becomes_nothing():
    bare, n_replaced = without_batch_norm(runnable(nn.BatchNorm2d(3), images))
    assert n_replaced == 1
    assert isinstance(bare.module, nn.Identity)


def test_with_and_without_batch_norm_are_both_measured():
    sweep = sweep_norm(runnable(normed(), images), batch_size=4, n_steps=1)
    assert [one.label for one in sweep.measured] == ["with batch norm", "without"]
    assert sweep.rows[0].page_fault_bytes >= 0


def test_a_model_without_batch_norm_has_nothing_to_compare():
    with pytest.raises(InputError, match="m has no batch norm to remove"):
        sweep_norm(linear(), batch_size=4)


def test_a_cpu_says_why_it_has_not_every_precision_and_the_module_stays_in_its_own():
    given = linear()
    sweep = sweep_precisions(given, batch_size=4, n_steps=1)
    assert [one.label for one in sweep.measured] == ["fp32", "amp-bf16", "bf16"]
    reasons = {one.label: one.reason for one in sweep.rows if one.measurement is None}
    assert reasons == {
        "tf32": "tf32 is a mode of NVIDIA's matrix units",
        "amp-fp16": "fp16 with loss scaling is for CUDA; a CPU has bf16",
    }
    assert given.module.weight.dtype == torch.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_without_a_gpu_the_cpu_is_measured_and_one_sentence_says_so():
    sweep = sweep_devices(linear(), batch_size=4, n_steps=1)
    assert [one.label for one in sweep.measured] == ["cpu"]
    assert sweep.rows[1].reason == "there is no GPU that this torch can use, so only the CPU was measured"
    assert sweep.verdict.startswith("Only cpu was measured")


def test_a_variant_that_fails_is_a_row_with_its_reason():
    class Broken(nn.Linear):
        def forward(self, x):
            raise ValueError("no bf16 here")

    broken = runnable(Broken(4, 2), lambda batch_size: (torch.zeros(batch_size, 4),))
    attempts = {"good": variant("good", linear(), batch_size=4, n_steps=1), "bad": variant("bad", broken, batch_size=4)}
    sweep = sweep_variants("precision", linear(), 4, attempts)
    assert [one.label for one in sweep.measured] == ["good"]
    assert "ValueError: no bf16 here" in sweep.rows[1].reason


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (row("b", 0.005), "b is 2.00 times as fast as a."),
        (row("b", 0.020), "b takes 2.00 times as long as a."),
        (row("b", 0.0101), "No clear difference between b and a"),
        (row("b", 0.008, spread=0.5), "No clear difference between b and a"),
    ],
)
def test_the_verdict_claims_no_more_than_the_spread_allows(other, words):
    assert sweep_of(row("a", 0.010), other).verdict.startswith(words)


def test_compiling_is_won_back_after_so_many_steps():
    sweep = sweep_of(row("eager", 0.010), row("compiled", 0.005, compile_s=10.0))
    assert (
        sweep.verdict
        == "compiled is 2.00 times as fast as eager. Compiling took 10.0 s, which pays off after 2,000 steps."
    )


def test_compiling_that_makes_nothing_faster_is_never_won_back():
    sweep = sweep_of(row("eager", 0.010), row("compiled", 0.020, compile_s=10.0))
    assert sweep.verdict.endswith("Compiling took 10.0 s, which never pays off here.")


def test_json_has_the_speedup_over_the_first():
    rows = sweep_of(row("a", 0.010), row("b", 0.005)).to_dict()["rows"]
    assert [one["speedup"] for one in rows] == pytest.approx([1.0, 2.0])
