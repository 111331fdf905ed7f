"""A CPU that nobody measured: its interval holds what real machines were off by."""

import traincast as tc


def test_the_interval_of_a_cpu_that_was_not_calibrated_spans_more_than_a_factor_of_two_each_way():
    found = tc.forecast("cifar_resnet20", on="generic-cpu", batch_size=32)
    low, high = found.interval("step_s")
    assert low < found.step_s / 2.2
    assert high > 2.2 * found.step_s


def test_that_of_a_gpu_is_narrow_beside_it():
    found = tc.forecast("cifar_resnet20", on="T4", batch_size=32)
    low, high = found.interval("step_s")
    assert high / low < 2
