"""Whether GPUs differ by more than chance."""

import numpy as np
import pytest

from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.hardware import hardware_test


def fits_of(factor_of, n_models=6, noise=0.0):
    rng = np.random.default_rng(1)
    return [
        Fit(model=f"m{n}", n_layers=n, gpu=gpu, b1=0.5, b2=0.0, b0=1e-4 * n * factor * np.exp(noise * rng.normal()))
        for n in range(1, n_models + 1)
        for gpu, factor in factor_of.items()
    ]


def test_gpus_that_differ_by_chance_are_not_told_apart():
    found = hardware_test(fits_of({"A": 1.0, "B": 1.0, "C": 1.0}, noise=0.05), "b0")
    assert not found.is_rejected
    assert (found.n_rows, found.n_models, found.n_gpus) == (18, 6, 3)


def test_a_gpu_that_always_learns_faster_is_found():
    found = hardware_test(fits_of({"A": 1.0, "B": 1.0, "C": 1.2}, noise=0.02), "b0")
    assert found.is_rejected
    assert found.spread_fraction == pytest.approx(0.2, abs=0.05)


def test_the_smallest_p_is_that_of_the_number_of_orders():
    found = hardware_test(fits_of({"A": 1.0, "B": 2.0}, n_models=3), "b0")
    assert found.least_p_value == 2 / 2**3
    assert found.p_value == pytest.approx(2 / 2**3, abs=0.02)  # each of 3 models in one of 2 orders, two of them as far


def test_under_chance_alone_p_is_uniform():
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(40):
        rows = [
            Fit(model=f"m{n}", n_layers=n, gpu=gpu, b0=float(np.exp(rng.normal())), b1=1.0, b2=0.0)
            for n in range(1, 5)
            for gpu in "AB"
        ]
        p_values.append(hardware_test(rows, "b0").p_value)
    assert 0.35 < np.mean(p_values) < 0.7


def test_models_on_one_gpu_say_nothing_of_gpus():
    assert hardware_test(fits_of({"A": 1.0}), "b0") is None
    mixed = [*fits_of({"A": 1.0, "B": 1.0}, n_models=2), Fit(model="x", n_layers=9, gpu="A", b0=1.0, b1=1.0, b2=0.0)]
    assert hardware_test(mixed, "b0").n_models == 2


def test_rows_without_the_quantity_are_not_counted():
    assert hardware_test(fits_of({"A": 1.0, "B": 1.0}), "epochs") is None
