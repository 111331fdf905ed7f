"""Samples at a larger batch where nobody measured the gradient's noise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.curves.batch_efficiency import epochs_at_batch
from traincast.curves.usual_batch import UsualBatch, shipped
from traincast.errors import InputError


def test_a_batch_four_times_as_large_with_a_noise_scale_of_two_batches_needs_twice_the_samples():
    assert UsualBatch(ratio=2.0, log_sd=1.0).samples_needed(4.0).p50 == pytest.approx(2.0)


def test_it_is_the_law_of_a_measured_noise_scale():
    usual = UsualBatch(ratio=7.0, log_sd=1.0)
    measured = float(epochs_at_batch(1.0, 512, at_batch=64, noise_scale=7.0 * 64))
    assert usual.samples_needed(8.0).p50 == pytest.approx(measured)


@given(growth=st.floats(1.0, 1e6))
def test_more_samples_are_needed_but_never_as_many_times_more_as_the_batch_grew(growth):
    told = shipped().samples_needed(growth)
    assert 1.0 <= told.p10 <= told.p50 <= told.p90 <= growth


def test_a_smaller_batch_needs_fewer():
    told = shipped().samples_needed(0.25)
    assert 0.25 < told.p10 <= told.p50 <= told.p90 < 1.0


def test_a_growth_that_is_none_is_refused():
    with pytest.raises(InputError, match="above 0"):
        shipped().samples_needed(0.0)
