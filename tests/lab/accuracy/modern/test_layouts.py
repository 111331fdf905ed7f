"""How measured layouts are asked about, and how their forecasts are scored."""

from dataclasses import replace

import pytest

from lab.accuracy.modern.layout_rows import layout_of
from lab.accuracy.modern.layout_sight import Seen, order_of, score_of
from traincast.kernels.refit.modern.architecture import architecture_of
from traincast.kernels.refit.modern.language_row import LanguageRow, Sharding

SETTINGS = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 16384, "vocab": 51200, "norm": "layernorm"}
ROW = LanguageRow(
    file="made_up.csv.gz",
    source="made-up",
    device="H100-SXM5-80GB",
    n_gpus=64,
    between="3200Gb/s",
    model="gpt",
    architecture=architecture_of(SETTINGS, 2048),
    precision="fp8-cs",
    global_batch=256,
    accumulation_steps=64,
    recompute="none",
    attention="fused",
    is_compiled=False,
    sharding=Sharding(tensor_parallel=4, pipeline_parallel=4),
    parts=(),
    step_s=2.0,
    tags={
        "grade": "A",
        "framework": "NeMo",
        "sharding": "tp=4;pp=4;vp=8;ddp+distopt",
        "optimizer": "adam",
        "finetuning": "pretrain",
    },
)


def seen(observed_s, predicted_s, **changes):
    layout = layout_of(replace(ROW, step_s=observed_s, **changes))
    return Seen(layout=layout, predicted_s=predicted_s, low_s=0.9 * predicted_s, high_s=1.1 * predicted_s, fits=True)


def test_a_vendors_run_is_asked_with_its_stack_and_schedule():
    layout = layout_of(ROW)
    assert layout.place == "8x8xH100-SXM5-80GB@3200Gb/s"
    asked = {"precision": "fp8", "stack": "megatron", "compiled": True, "strategy": "zero1", "accumulation_steps": 64}
    assert asked.items() <= layout.options.items()
    assert layout.options["pipeline_schedule"] == "interleaved:8"


def test_a_domain_of_nvlink_is_a_node():
    assert layout_of(replace(ROW, device="GB200", n_gpus=256)).place == "4x64xGB200@25600Gb/s"


@pytest.mark.parametrize(
    ("changes", "why_not"),
    [
        ({"architecture": None}, "mixture of experts, or a size is not told"),
        ({"precision": "nvfp4"}, "nvfp4"),
        ({"recompute": "not told"}, "recomputation not told"),
        ({"recompute": "selective (op)"}, "recomputation of some ops only"),
    ],
)
def test_what_is_not_told_is_not_asked(changes, why_not):
    assert layout_of(replace(ROW, **changes)).why_not == why_not


def test_a_score_is_of_shares_of_the_measured_time():
    score = score_of([seen(2.0, 2.1), seen(2.0, 1.6), seen(2.0, 3.0)])
    assert (score.median, score.mean, score.bias) == pytest.approx((0.2, 0.25, 0.05))
    assert score.covered == pytest.approx(1 / 3)
    assert score.constant == pytest.approx(0.0)


def test_only_layouts_that_differ_clearly_are_an_order():
    split = Sharding(tensor_parallel=8, pipeline_parallel=4)
    other = Sharding(tensor_parallel=2, pipeline_parallel=4)
    order = order_of([seen(1.0, 1.0), seen(1.05, 0.5, sharding=split), seen(2.0, 0.8, sharding=other)], same_batch=True)
    assert (order.n_pairs, order.n_right) == (2, 1)
