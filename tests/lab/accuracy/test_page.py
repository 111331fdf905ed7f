"""Targets and the page of accuracy, on sets made by hand under the real names."""

import numpy as np
import pytest

from lab.accuracy.page import page
from lab.accuracy.shortcut import Difference
from lab.accuracy.targets import targets_of
from traincast.kernels.refit.sets import WEIGHTS
from traincast.validation import charts
from traincast.validation.measured_set import MeasuredSet, Prediction

SETS = [name for name in WEIGHTS if not name.startswith(("product", "attention", "language"))]
PUBLISHED = ("neusight", "habitat", "li", "roofline")


def hand_made(name, error):
    """Four rows, all off by the same: enough for every target to have rows."""
    n = 4
    tags = {"device": ["T4", "T4", "V100-PCIe-32GB", "V100-PCIe-32GB"], "vendor": ["NVIDIA"] * n}
    if name.startswith("transformers"):
        tags |= {"family": ["gpt2"] * n, "batch": ["8"] * n, "mode": ["inference", "inference", "train", "train"]}
        tags |= {"part": ["forward", "forward", "forward", "backward"]}
    elif name.startswith("nvidia"):
        tags |= {"family": ["resnet50", "bert_base_squad"] * 2, "suite": ["v0"] * n, "part": ["step"] * n}
    elif name.startswith("timm"):
        tags |= {"family": ["ghostnet"] * 2 + ["resnet"] * 2, "model": ["a", "b", "c", "d"], "part": ["step"] * n}
    else:
        tags |= {"op": ["add"] * n, "dims": ["random"] * n}
    left_out = "family" if name.startswith("timm") else "GPU"
    ours = np.full(n, 1.0 + error)
    found = [
        Prediction(method="traincast", left_out=left_out, seconds=ours, log_sd=np.full(n, 0.1)),
        Prediction(method="traincast", left_out="family", seconds=ours, log_sd=np.full(n, 0.1)),
        Prediction(method="roofline", left_out="-", seconds=np.array([0.5, 0.5, 0.5, np.nan])),
        Prediction(method="flop + bytes", left_out=left_out, seconds=np.full(n, 0.75)),
    ]
    if name.startswith("transformers"):
        found += [Prediction(method=f"published {who}", left_out="-", seconds=np.full(n, 1.25)) for who in PUBLISHED]
    return MeasuredSet(
        name=name,
        observed_s=np.ones(n),
        tags={key: np.array(values) for key, values in tags.items()},
        predictions=tuple(found),
        noise="no row was measured twice",
    )


@pytest.fixture
def sets():
    return [hand_made(name, 0.125 if name in ("gemm", "elementwise") else 0.0625) for name in SETS]


def test_what_is_reached_is_compared_with_what_was_promised(sets):
    targets = {target.what: target for target in targets_of(sets)}
    gemm = targets["ops, gemm"]
    assert (gemm.wanted, gemm.reached, gemm.is_met) == ("median ≤ 12.0 %", "median 12.5 %", False)
    assert targets["ops, convolution"].is_met
    assert targets["transformer inference, NVIDIA (NeuSight's mean)"].wanted == "mean ≤ 25.0 %"
    assert targets["transformer training, both, V100 (NeuSight's mean)"].n == 1
    assert targets["NVIDIA examples, bert, fp32 and tf32"].n == 4
    assert targets["image models, all"].n == 24
    assert targets["p10 to p90, gemm"].reached == "100.0 %"


def test_training_is_reported_and_not_judged(sets):
    verdicts = {target.is_met for target in targets_of(sets) if "training" in target.what}
    assert verdicts == {None}


def test_the_page_names_misses_baselines_bad_cases_and_noise(sets):
    sets[0] = hand_made("gemm", 2.0)
    difference = Difference(split="without T4", set_name="gemm", n=4, shortcut_fraction=0.125, real_fraction=0.128)
    text = page(sets, [difference], [("Methods", "images/accuracy_methods.png")])
    assert "| ops, gemm | GPU | 4 | median ≤ 12.0 % | median 200.0 % | **missed** |" in text
    assert "| flop + bytes | 25.0 | 25.0 |" in text
    assert "| gemm | add, random size, T4 | 1.00 s | 3.00 s | +200.0 |" in text
    assert "no row was measured twice" in text
    assert "larger held-out medians in 1 of 1 cases, by up to 0.30 points" in text
    assert "1 rows of gemm ran on GPUs whose rate" in text
    assert "![Methods](images/accuracy_methods.png)" in text


def test_what_is_met_by_less_than_the_shortcut_hides_is_open(sets):
    sets[1] = hand_made("convolution", 0.1484375)  # 0.16 points below 15 %
    line = "| ops, convolution | GPU | 4 | median ≤ 15.0 % | median 14.8 % |"
    assert f"{line} met |" in page(sets, [], [])
    small, large = (
        Difference(split="without T4", set_name="gemm", n=4, shortcut_fraction=0.1, real_fraction=0.1 + more)
        for more in (0.001, 0.002)
    )
    assert f"{line} met |" in page(sets, [small], [])
    assert f"{line} open |" in page(sets, [small, large], [])


def test_every_chart_can_be_drawn(sets):
    from traincast.report.figure import to_figure

    found = [charts.scatter(each) for each in sets]
    found += [charts.methods(sets, title="Methods"), charts.by_tag(sets, "device", title="GPUs")]
    for chart in found:
        assert to_figure(chart, with_title=True)["data"]
    assert found[0].diagonal
    bars = charts.methods(sets, title="Methods").series
    assert bars[0].name == "traincast"


def test_only_the_worst_groups_are_drawn_where_there_are_many(sets):
    chosen = [hand_made("timm train nchw", 0.5)]
    (series,) = charts.by_tag(chosen, "family", title="Families", most=1).series
    assert list(series.x) in (["ghostnet"], ["resnet"])


def test_the_section_on_todays_gpus_stands_before_first_sight(sets):
    text = page(sets, [], [], first_sight="# At first sight\n\nrest\n", modern="<!-- a section of its own -->")
    assert text.index("<!-- a section of its own -->") < text.index("## At first sight")
    assert "<!-- a section" not in page(sets, [], [])
