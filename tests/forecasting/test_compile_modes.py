"""Modes of torch.compile: with CUDA graphs a pass is launched at once, and no kernel waits for the host."""

import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.forecasting.question import _COMPILED_DISPATCH
from traincast.hardware.host import DEFAULT_HOST, find_host

LAUNCH_S = _COMPILED_DISPATCH * find_host(DEFAULT_HOST).forward_dispatch_s


def compiled(batch_size, mode="default", on="A100-SXM4-80GB", **options):
    return tc.forecast("resnet50", on, batch_size, precision="amp-bf16", compiled=True, compile_mode=mode, **options)


def test_a_step_of_cuda_graphs_takes_what_its_kernels_take_and_one_launch():
    small = compiled(2, "reduce-overhead", optimizer="none")
    assert small.step_s == pytest.approx(small.device_s + LAUNCH_S, rel=1e-6)
    assert small.host_s == pytest.approx(LAUNCH_S)


def test_cuda_graphs_help_where_the_host_is_slower_than_the_device_and_nowhere_else():
    for batch_size, least, most in ((2, 0.1, 0.5), (1024, 0.99, 1.0)):
        ratio = compiled(batch_size, "reduce-overhead").step_s / compiled(batch_size).step_s
        assert least < ratio <= most


def test_the_optimizer_stays_outside_of_the_graphs():
    with_update, without = (compiled(2, "reduce-overhead", optimizer=name) for name in ("adamw", "none"))
    assert with_update.host_s > without.host_s + 5 * find_host(DEFAULT_HOST).optimizer_dispatch_s


def test_each_pass_of_an_accumulated_step_is_launched():
    one, four = (compiled(8, "reduce-overhead", optimizer="none", accumulation_steps=n) for n in (1, 4))
    assert four.host_s == pytest.approx(4 * one.host_s)


def test_templates_that_max_autotune_tries_count_as_the_kernels_of_the_library_and_the_answer_says_so():
    graphs, tuned = compiled(8, "reduce-overhead"), compiled(8, "max-autotune")
    assert tuned.step_s == graphs.step_s
    assert any("max-autotune" in warning for warning in tuned.warnings)
    assert not any("max-autotune" in warning for warning in graphs.warnings)


def test_a_cpu_has_no_cuda_graphs():
    slow, same = (compiled(2, mode, on="generic-cpu") for mode in ("default", "reduce-overhead"))
    assert same.step_s == slow.step_s
    assert not any("CUDA" in warning for warning in same.warnings)


def test_a_mode_of_what_is_not_compiled_is_refused():
    with pytest.raises(InputError, match=r"'reduce-overhead': it is a mode of torch\.compile: ask for compiled code"):
        tc.forecast("resnet50", "T4", 8, compile_mode="reduce-overhead")


def test_a_mode_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(InputError, match="Choose from: default, reduce-overhead, max-autotune"):
        compiled(8, "reduce_overhead")


def test_the_answer_names_its_mode():
    assert compiled(8, "reduce-overhead").to_dict()["compile_mode"] == "reduce-overhead"
    assert tc.forecast("resnet50", "T4", 8).to_dict()["compile_mode"] is None
