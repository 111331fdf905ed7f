"""A CPU or an accelerator that nobody measured: its interval holds what real machines were off by."""

import pytest

import traincast as tc


@pytest.mark.parametrize("device", ["generic-cpu", "TPU-v5e", "Trainium2", "Gaudi-3", "M2-Ultra"])
def test_the_interval_of_what_was_never_measured_spans_more_than_a_factor_of_two_each_way(device):
    found = tc.forecast("cifar_resnet20", on=device, batch_size=32)
    low, high = found.interval("step_s")
    assert low < found.step_s / 2.2
    assert high > 2.2 * found.step_s


def test_that_of_a_gpu_is_narrow_beside_it():
    found = tc.forecast("cifar_resnet20", on="T4", batch_size=32)
    low, high = found.interval("step_s")
    assert high / low < 2
