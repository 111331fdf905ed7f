"""What a sample is worth in a larger batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.curves.batch_efficiency import efficiency, epochs_at_batch, noise_scale
from traincast.errors import InputError

batches = st.floats(1.0, 1e5)
scales = st.floats(0.0, 1e7)


def test_the_noise_scale_by_hand():
    assert noise_scale(2.0, 6.0, at_batch=128) == pytest.approx(384.0)
    assert noise_scale([2.0, 0.0], [6.0, 6.0], at_batch=10).tolist() == [30.0, np.inf]


def test_efficiency_by_hand():
    # At a noise scale of 300 samples a batch of 500 teaches (300 + 100)/(300 + 500) per sample of what 100 do.
    assert efficiency(500, at_batch=100, noise_scale=300.0) == pytest.approx(0.5)
    assert epochs_at_batch(10, 500, at_batch=100, noise_scale=300.0) == pytest.approx(20.0)


@given(batch=batches, base=batches, ratio=st.floats(1e-3, 1e3))
def test_efficiency_is_adascales_gain_over_the_growth_of_the_batch(batch, base, ratio):
    sqr, var, scale = 1.0, ratio, batch / base
    gain = (var + sqr) / (var / scale + sqr)
    found = efficiency(batch, at_batch=base, noise_scale=noise_scale(sqr, var, at_batch=base))
    assert found == pytest.approx(gain / scale)


@given(batch=batches, base=batches, phi=scales)
def test_there_and_back_is_the_same_epochs(batch, base, phi):
    there = epochs_at_batch(7.0, batch, at_batch=base, noise_scale=phi)
    assert epochs_at_batch(there, base, at_batch=batch, noise_scale=phi) == pytest.approx(7.0)


@given(base=batches, phi=scales, growth=st.floats(1.0, 100.0))
def test_a_larger_batch_needs_at_least_as_many_epochs_and_at_most_as_many_steps(base, phi, growth):
    epochs = float(epochs_at_batch(1.0, base * growth, at_batch=base, noise_scale=phi))
    assert epochs >= 1 - 1e-12
    assert epochs <= growth * (1 + 1e-12)


def test_pure_noise_keeps_the_epochs_and_pure_signal_keeps_the_steps():
    assert epochs_at_batch(5, 1024, at_batch=128, noise_scale=np.inf) == 5
    assert epochs_at_batch(5, 1024, at_batch=128, noise_scale=0.0) == pytest.approx(40.0)


def test_a_run_is_summed_stretch_by_stretch():
    total = epochs_at_batch([1.0, 1.0], 300, at_batch=100, noise_scale=[100.0, np.inf]).sum()
    assert total == pytest.approx(2.0 + 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise_scale(-1.0, 1.0, at_batch=1), "grad_sqr should be finite and not below 0; found -1"),
        (lambda: noise_scale(1.0, np.nan, at_batch=1), "grad_var should be finite and not below 0; found nan"),
        (lambda: noise_scale(0.0, 0.0, at_batch=1), "with neither signal nor noise"),
        (lambda: noise_scale(1.0, 1.0, at_batch=0), "A batch size should be finite and above 0; found 0"),
        (lambda: efficiency(0, at_batch=1, noise_scale=1.0), "A batch size should be finite and above 0; found 0"),
        (lambda: efficiency("many", at_batch=1, noise_scale=1.0), "should be numbers, not 'many'"),
        (lambda: efficiency(2, at_batch=1, noise_scale="x"), "should be numbers, not 'x'"),
        (lambda: efficiency(2, at_batch=1, noise_scale=-1.0), "A noise scale is a number of samples"),
        (
            lambda: epochs_at_batch(-1, 2, at_batch=1, noise_scale=1.0),
            "Epochs should be finite and not below 0; found -1",
        ),
    ],
)
def test_what_cannot_be_is_said(call, message):
    with pytest.raises(InputError, match=message):
        call()
