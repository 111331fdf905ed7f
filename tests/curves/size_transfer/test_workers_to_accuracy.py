"""Time to accuracy against workers."""

import numpy as np
import pytest

from traincast.api.time_to_accuracy import time_to_accuracy
from traincast.curves.size_transfer.transferred import Estimate
from traincast.errors import InputError
from traincast.scaling.optimus import SpeedModel
from traincast.views.size_transfer import workers_chart

EPOCHS = Estimate(value=10.0, low=5.0, high=20.0)
SYNC = SpeedModel(mode="sync", theta=(1.0, 0.0, 4.0, 0.0, 0.0), batch_size=128)
ASYNC = SpeedModel(mode="async", theta=(1.0, 1.0, 0.0, 0.0))


def test_epochs_times_steps_an_epoch_over_speed_by_hand():
    curve = time_to_accuracy(EPOCHS, SYNC, steps_per_epoch=100, n_workers=[4], n_servers=(2,))[0]
    step_s = 128 / 4 + 4 * 4 / 2  # 40 s
    assert curve.time_s == pytest.approx([10 * 100 * step_s])
    assert curve.low_s == pytest.approx([5 * 100 * step_s])
    assert curve.high_s == pytest.approx([20 * 100 * step_s])


def test_more_servers_carry_more_workers():
    # 128/w + 4 w/p is least at w = sqrt(32 p): 8 for 2 servers, 11.3 for 4.
    two, four = time_to_accuracy(EPOCHS, SYNC, steps_per_epoch=100, n_workers=range(1, 33))
    assert (two.n_servers, two.best_n_workers) == (2, 8)
    assert (four.n_servers, four.best_n_workers) == (4, 11)
    assert (four.time_s <= two.time_s).all()
    assert two.enough_n_workers == 6  # 33.3 s a step where 8 workers take 32; 5 take 35.6


def test_asynchronous_workers_help_less_and_less():
    curve = time_to_accuracy(EPOCHS, ASYNC, steps_per_epoch=100, n_workers=range(1, 65), n_servers=(2,))[0]
    assert (np.diff(curve.time_s) < 0).all()
    assert curve.best_n_workers == 64
    assert curve.enough_n_workers < 20


def test_one_chart_holds_every_curve_and_its_band():
    chart = workers_chart(time_to_accuracy(EPOCHS, SYNC, steps_per_epoch=100, n_workers=range(1, 5)))
    assert [series.name for series in chart.series] == ["2 servers, p10 to p90", "4 servers, p10 to p90"]
    for series in chart.series:
        assert [2 * low for low in series.low] == pytest.approx(series.y)
        assert [2 * middle for middle in series.y] == pytest.approx(series.high)
    assert chart.y_show == "duration"


def test_as_data():
    data = time_to_accuracy(EPOCHS, SYNC, steps_per_epoch=100, n_workers=range(1, 9))[0].to_dict()
    assert data["best_n_workers"] == 8
    assert set(data) >= {"n_servers", "n_workers", "time_s", "low_s", "high_s", "enough_n_workers"}


@pytest.mark.parametrize("steps_per_epoch", [0, -1, float("nan"), float("inf")])
def test_an_epoch_has_steps(steps_per_epoch):
    with pytest.raises(InputError, match="The steps per epoch should be"):
        time_to_accuracy(EPOCHS, SYNC, steps_per_epoch=steps_per_epoch, n_workers=[1])
