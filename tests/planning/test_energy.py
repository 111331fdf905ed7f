"""Energy and CO2 of a run: the power limit times how far it is used."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.api.forecasts import forecast
from traincast.errors import InputError
from traincast.forecasting.energy import J_PER_KWH, energy_of
from traincast.hardware.grid import Grid
from traincast.hardware.run_place import find_place


@pytest.fixture(scope="module")
def answer():
    """A step of one second, of which the device (a T4 of 70 W) works all of it."""
    found = forecast("mnist_cnn", "T4", 10, n_samples=36_000, method="roofline")
    return replace(found, forward_s=1.0, loss_s=0.0, backward_s=0.0, optimizer_s=0.0, device_s=1.0)


def test_an_hour_of_work_is_four_fifths_of_the_limit(answer):
    found = energy_of(answer)
    assert found.power_w.p50 == pytest.approx(0.8 * 70)
    assert found.total_j.p50 == pytest.approx(0.056 * J_PER_KWH)
    assert found.co2_kg is None


def test_a_device_that_waits_draws_a_quarter(answer):
    assert energy_of(replace(answer, device_s=0.0)).power_w.p50 == pytest.approx(0.25 * 70)
    assert energy_of(replace(answer, device_s=0.5)).power_w.p50 == pytest.approx((0.25 + 0.55 / 2) * 70)


def test_co2_is_energy_times_the_grid(answer):
    found = energy_of(answer, grid=Grid(name="mine", g_per_kwh=500))
    assert found.co2_kg.p50 == pytest.approx(0.056 * 0.5)
    assert found.co2_kg.p10 / found.co2_kg.p50 == pytest.approx(found.total_j.p10 / found.total_j.p50)


def test_energy_is_less_sure_than_time_and_than_power(answer):
    found, (low, high) = energy_of(answer), answer.interval("total_s")
    assert found.total_j.p10 / found.total_j.p50 < min(low / answer.total_s, found.power_w.p10 / found.power_w.p50)
    assert found.total_j.p90 / found.total_j.p50 > max(high / answer.total_s, found.power_w.p90 / found.power_w.p50)


@given(pue=st.floats(1, 3), n=st.sampled_from([1, 2, 8]))
def test_energy_grows_with_the_site_and_with_devices(answer, pue, n):
    alone = energy_of(answer)
    assert energy_of(answer, pue=pue).total_j.p50 == pytest.approx(pue * alone.total_j.p50)
    question = replace(answer.question, cluster=find_place(f"{n}xT4").cluster)
    assert energy_of(replace(answer, question=question)).total_j.p50 == pytest.approx(n * alone.total_j.p50)


def test_without_a_power_limit_or_a_length_there_is_no_energy(answer):
    assert energy_of(forecast("mnist_cnn", "generic-cpu", 8)) is None
    assert energy_of(forecast("mnist_cnn", "T4", 8)).total_j is None


@pytest.mark.parametrize("pue", [0.9, float("nan"), float("inf")])
def test_a_site_draws_what_its_devices_do(answer, pue):
    with pytest.raises(InputError, match="pue is a number of at least 1"):
        energy_of(answer, pue=pue)
