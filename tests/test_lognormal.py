"""Lognormal variables: ends, deviations and chances belong together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from traincast.lognormal import FIFTHS_SDS, P90_SDS, chance_below, log_sd_of, p90_factor


@given(median=st.floats(1e-6, 1e9), log_sd=st.floats(0.01, 3))
def test_the_ends_of_a_deviation_have_that_deviation(median, log_sd):
    factor = p90_factor(log_sd)
    assert log_sd_of(median / factor, median * factor) == pytest.approx(log_sd)
    assert chance_below(median, median, log_sd) == pytest.approx(0.5)
    assert chance_below(median * factor, median, log_sd) == pytest.approx(0.9, abs=1e-4)
    assert chance_below(median / factor, median, log_sd) == pytest.approx(0.1, abs=1e-4)


def test_fifths_are_the_middles_of_equal_parts():
    assert [ndtr(sds) for sds in FIFTHS_SDS] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9], abs=1e-4)
    assert FIFTHS_SDS[-1] == P90_SDS
