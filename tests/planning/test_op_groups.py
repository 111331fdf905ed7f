"""A step op by op and module by module, and its roofline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.planning.advice import Advice
from traincast.planning.op_groups import BOUNDS, UPDATE, op_groups, pattern_of
from traincast.planning.roofline_chart import roofline_chart


def advice(model="resnet18", on="V100-SXM2-16GB", batch=32, **options):
    return Advice(tc.forecast(model, on, batch, **options))


@pytest.mark.parametrize("path", ["h.3.mlp.fc", "h.11.mlp.fc"])
def test_equal_blocks_have_one_pattern(path):
    assert pattern_of(path) == "h.*.mlp.fc"
    assert pattern_of("layer1.0.conv2") == "layer1.*.conv2"
    assert pattern_of("") == "(model)"


@given(
    model=st.sampled_from(["mnist_cnn", "resnet18", "bert-base"]),
    batch=st.sampled_from([2, 32]),
    passes=st.sampled_from([1, 2]),
    method=st.sampled_from(["traincast", "roofline"]),
)
def test_ops_and_modules_add_up_to_the_step(model, batch, passes, method):
    found = advice(model, "T4", batch, accumulation_steps=passes, method=method)
    step_s = found.forecast.step_s
    assert sum(one.work.seconds for one in found.ops) == pytest.approx(step_s)
    assert sum(one.work.seconds for one in found.modules) == pytest.approx(step_s)
    assert sum(one.work.device_s for one in found.ops) == pytest.approx(found.forecast.device_s)
    assert all(min(one.work.by_bound_s) >= 0 for one in found.ops)


def test_the_longest_come_first_and_the_update_is_a_row_of_its_own():
    found = advice("gpt2", "A100-SXM4-80GB", 4, optimizer="adamw", precision="amp-bf16")
    seconds = [one.work.seconds for one in found.ops]
    assert seconds == sorted(seconds, reverse=True)
    assert UPDATE in {one.module for one in found.modules}
    blocks = {one.module: one.work.n_ops for one in found.ops if one.name == "addmm" and one.phase == "forward"}
    assert blocks["transformer.h.*.mlp.c_fc"] == 12


def test_a_module_with_most_of_the_step_is_shown_by_its_parts():
    found = advice("gpt2", "A100-SXM4-80GB", 4, optimizer="adamw", precision="amp-bf16")
    assert {"transformer.h.*.mlp", "transformer.h.*.attn"} <= {one.module for one in found.modules}


def test_a_tiny_step_is_bound_by_the_host_and_large_products_by_compute():
    tiny = advice("mnist_cnn", "V100-SXM2-16GB", 1, host="tf2-keras")
    assert sum(one.work.by_bound_s[BOUNDS.index("host")] for one in tiny.ops) > 0.5 * tiny.forecast.step_s
    large = {(one.kind, one.work.bound_by) for one in advice("vgg16", batch=64).ops[:3]}
    assert ("convolution backward", "compute") in large
    norms = {one.work.bound_by for one in advice("resnet50").ops if one.kind == "normalisation"}
    assert norms == {"memory"}


def test_a_kernel_that_is_little_more_than_its_start_is_bound_by_its_launch():
    bounds = {one.work.bound_by for one in op_groups(tc.forecast("mnist_cnn", "T4", 8).question)}
    assert "launch" in bounds


def test_no_dot_of_a_datasheet_roofline_is_above_its_roof():
    found = advice("resnet50", method="roofline").roofline
    peak = found.ceilings[0].flop_per_s
    memory = found.ceilings[-1].bytes_per_s
    assert found.shown_fraction > 0.95
    for point in found.points:
        roof = min(peak, point.flop_per_byte * memory)
        assert point.flop_per_s <= roof * (1 + 1e-9)
        if point.bound_by in ("compute", "memory"):
            assert point.flop_per_s == pytest.approx(roof, rel=0.2)  # several ops a dot, each on its own roof


@pytest.mark.parametrize("model", ["resnet50", "vgg16"])
@pytest.mark.parametrize("device", ["T4", "V100-SXM2-16GB", "A100-SXM4-80GB"])
def test_products_far_right_of_the_ridge_are_bound_by_compute_whatever_algorithm_runs_them(model, device):
    found = advice(model, device, 64).roofline
    peak, memory = found.ceilings[0].flop_per_s, found.ceilings[-1].bytes_per_s
    far = [point for point in found.points if point.is_product and point.flop_per_byte > 4 * peak / memory]
    assert far
    assert {point.bound_by for point in far} == {"compute"}


def test_matrix_units_have_a_roof_of_their_own():
    names = [ceiling.name for ceiling in advice(precision="amp-fp16").roofline.ceilings]
    assert names == ["fp16 products", "fp32 without matrix units", "memory"]
    assert [ceiling.name for ceiling in advice().roofline.ceilings] == ["fp32 products", "memory"]


def test_the_chart_has_roofs_and_dots_as_large_as_their_share():
    found = advice(precision="amp-fp16").roofline
    chart = roofline_chart(found, "A roof")
    assert chart.log_x
    assert chart.log_y
    dots = [series for series in chart.series if series.is_dots]
    assert sum(len(series.x) for series in dots) == len(found.points)
    assert max(size for series in dots for size in series.sizes) == pytest.approx(1)
    roofs = [series for series in chart.series if not series.is_dots]
    for roof in roofs:
        assert roof.y[1] == roof.y[2]
        assert roof.y[0] / roof.x[0] == pytest.approx(roof.y[1] / roof.x[1])


def test_the_dictionary_has_every_part():
    data = advice("mnist_cnn", "T4", 8).to_dict()
    assert set(data) == {"ops", "modules", "roofline", "what_ifs", "left_out"}
    assert data["ops"][0]["by_bound_s"].keys() == set(BOUNDS)


def test_a_reduction_to_one_number_has_its_place_among_the_other_ops_of_a_roofline():
    """A loss of many samples writes one element: counted by what it writes, it would press all else together."""
    found = advice("gpt2", "A100-SXM4-80GB", 8, precision="amp-bf16").roofline
    reductions = [point for point in found.points if point.kind == "reduction"]
    assert reductions
    assert min(point.flop_per_byte for point in reductions) > 0.05
