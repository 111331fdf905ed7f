"""What a reader must know before believing a measurement."""

from dataclasses import replace

import pytest

from traincast.api.measuring import forecast_of
from traincast.measurement.measured import Measurement
from traincast.measurement.remarks import on_noise, remarks_on
from traincast.measurement.statistics import summarise
from traincast.records.environment import Environment

QUIET = Environment(
    device="Tesla T4", device_kind="cuda", host="h", n_threads=1, n_cores=2, versions={}, clocks={}, load_average=0.2
)
STEADY = summarise([1.00, 1.01, 1.02, 1.03, 1.04, 1.05])


def measurement(**changes):
    how = {"model": "mnist_cnn", "batch_size": 8, "optimizer": "sgd", "precision": "fp32", "device": "cuda"}
    return Measurement(**(how | {"phases": {}, "step": STEADY, "environment": QUIET} | changes))


def remarks(**changes):
    facts = {"step": STEADY, "launch": None, "losses": [1.0], "environment": QUIET}
    return remarks_on(**(facts | {"is_partial": False, "is_warm": True} | changes))


def test_nothing_is_said_about_steady_steps_on_a_quiet_machine():
    assert remarks() == ()


def test_a_busy_machine_is_told():
    busy = replace(QUIET, load_average=3.5)
    assert remarks(environment=busy) == ("The machine was busy before the measurement: a load of 3.5 on 2 cores.",)


def test_a_system_without_a_load_average_is_not_called_busy():
    assert remarks(environment=replace(QUIET, load_average=None)) == ()


def test_many_steps_far_above_the_others_are_told():
    (told,) = on_noise(summarise([1.0] * 8 + [30.0, 40.0]), QUIET)
    assert told == "2 of 10 steps were far slower than the others and are left out."


def test_steps_that_differ_widely_are_told():
    (told,) = on_noise(summarise([1.0, 2.0, 3.0, 4.0]), QUIET)
    assert told.startswith("Steps differ by 59% (a standard deviation)")


@pytest.mark.parametrize(("launch_s", "is_told"), [(0.1, True), (0.9, False)])
def test_a_host_that_is_done_long_before_the_device_is_told(launch_s, is_told):
    told = remarks(launch=summarise([launch_s] * 3))
    assert bool(told) == is_told
    assert all("10.2 x too fast" in one for one in told)


def test_one_infinite_loss_is_told_with_its_step():
    (told,) = remarks(losses=[1.0, float("inf"), 1.0])
    assert told.startswith("The loss was inf at step 2, counted from the first of the warm-up")
    assert "1 of 3 steps" in told


def test_a_gpu_is_forecast_by_the_name_that_its_driver_gives():
    forecast, why_not = forecast_of(measurement(), "mnist_cnn")
    assert (forecast.device, why_not) == ("T4", "")


def test_a_gpu_that_nobody_knows_is_measured_without_a_forecast():
    strange = replace(QUIET, device="Voodoo 2")
    forecast, why_not = forecast_of(measurement(environment=strange), "mnist_cnn")
    assert forecast is None
    assert why_not.startswith("No forecast beside it: ")
    assert "Voodoo 2" in why_not
