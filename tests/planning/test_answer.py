"""The whole answer for one choice: what bounds a step, the way to a target, and what is taken for granted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.api.forecasts import answer, forecasts
from traincast.errors import InputError
from traincast.forecasting.by_bound import BOUNDS

LOG = "epoch,val_loss\n" + "".join(f"{epoch},{2 / epoch + 0.5}\n" for epoch in range(1, 13))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


@given(
    batch=st.sampled_from([8, 64]),
    on=st.sampled_from(["T4", "4xT4", "2x4xT4@10Gb/s", "generic-cpu"]),
    rate=st.sampled_from([None, 100.0]),
)
def test_seconds_by_bound_add_up_to_the_step(batch, on, rate):
    found = tc.forecast("resnet18", on, batch, input_samples_per_s=rate)
    shares = found.bound_s
    assert tuple(shares) == BOUNDS
    assert sum(shares.values()) == pytest.approx(found.step_s)
    assert min(shares.values()) >= 0
    assert max(shares, key=shares.get) == found.bound_by


def test_the_largest_share_is_what_the_forecast_says_binds():
    for model, batch in (("mnist_cnn", 1), ("resnet50", 64)):
        found = tc.forecast(model, "V100-SXM2-16GB", batch)
        shares = found.bound_s
        assert max(shares, key=shares.get) == found.bound_by


def test_a_pipeline_waits_for_its_stages():
    found = tc.forecast("gpt2", "4xA100-SXM4-80GB", 8, pipeline_parallel=4, accumulation_steps=4, optimizer="adamw")
    shares = found.bound_s
    assert sum(shares.values()) == pytest.approx(found.step_s)
    passes_s = found.forward_s + found.loss_s + found.backward_s
    assert shares["pipeline"] == pytest.approx(found.bubble_s)
    assert 0.2 * passes_s < shares["pipeline"] < 3 / 7 * passes_s  # three stages are done before the one with the head


def test_the_way_to_a_target_is_epochs_of_the_log_at_the_pace_of_the_forecast(log):
    forecast = tc.forecast("resnet18", "p3.2xlarge", 100, n_samples=10_000, n_epochs=30)
    there = answer(forecast, curve=log, target=0.6).to_target
    assert there.probability > 0.95
    assert there.updates.p10 <= there.updates.p50 <= there.updates.p90
    assert 15 * 100 < there.updates.p50 < 25 * 100  # 2 / epoch + 0.5 is 0.6 at epoch 20
    assert there.total_s.p50 == pytest.approx(there.updates.p50 * forecast.step_s, rel=0.02)
    assert there.cost_usd.p50 == pytest.approx(there.total_s.p50 * 3.06 / 3600)


def test_a_target_beyond_the_curve_is_never_reached(log):
    there = answer(tc.forecast("resnet18", "T4", 100, n_samples=10_000), curve=log, target=0.1).to_target
    assert there.probability < 0.5
    assert there.total_s.p90 == float("inf")


def test_a_run_that_is_over_before_its_target_is_warned_of(log):
    def warned(n_epochs, target):
        forecast = tc.forecast("resnet18", "T4", 100, n_samples=10_000, n_epochs=n_epochs)
        return [one for one in answer(forecast, curve=log, target=target).to_dict()["warnings"] if "The run of" in one]

    (short,) = warned(10, 0.6)  # 2 / epoch + 0.5 is 0.6 at epoch 20
    assert short.startswith("The run of 10 epochs is over before loss 0.6 is likely: that takes ")
    assert 15 < float(short.split()[-2]) < 25
    assert warned(10, 0.1) == ["The run of 10 epochs more likely than not never reaches loss 0.1."]
    assert warned(30, 0.6) == []
    assert warned(1, 0.6) == []  # no length was asked for


def test_a_log_of_steps_means_samples_where_it_says_its_batch_and_updates_where_not(tmp_path):
    path = tmp_path / "steps.jsonl"
    rows = (f'{{"step": {step}, "loss": {20 / step + 0.5}}}\n' for step in range(10, 200, 10))
    path.write_text("".join(rows))
    unsaid = tc.read_log(path)
    said = replace(unsaid, batch_size=64)
    forecast = tc.forecast("resnet18", "T4", 128)
    updates, samples = (answer(forecast, curve=log, target=0.58).to_target for log in (unsaid, said))
    assert 200 < updates.updates.p50 < 300  # 20 / step + 0.5 is 0.58 at step 250
    assert samples.updates.p50 == pytest.approx(updates.updates.p50 / 2)
    assert "as many updates" in updates.assumption
    assert "as many samples" in samples.assumption


def test_a_target_needs_a_curve_and_a_curve_a_target(log):
    forecast = tc.forecast("resnet18", "T4", 8)
    with pytest.raises(InputError, match="A target needs a curve"):
        answer(forecast, target=0.6)
    with pytest.raises(InputError, match="A curve needs a target"):
        answer(forecast, curve=log)
    with pytest.raises(InputError, match="give it n_samples"):
        answer(forecast, curve=log, target=0.6)


def test_assumptions_name_what_the_numbers_rest_on(log):
    forecast = tc.forecast("resnet18", "2xp3.16xlarge", 64, n_samples=1000, input_samples_per_s=5000)
    told = " ".join(answer(forecast, curve=log, target=0.6, pue=1.2).assumptions)
    for words in (
        "5,000 samples per second",
        "between nodes",
        "us-east-1, 2026",
        "80 % of its 300 W",
        "times 1.2",
        "g of CO2",
    ):
        assert words in told
    assert "as many epochs as the logged run needs" in told
    assert "The data loader keeps up" in " ".join(answer(tc.forecast("resnet18", "T4", 8)).assumptions)


def test_the_region_of_the_price_is_that_of_the_grid_unless_another_is_named():
    forecast = tc.forecast("resnet18", "p3.2xlarge", 8, n_samples=1000)
    assert answer(forecast).energy.grid.location == "Northern Virginia"
    assert answer(forecast, region="Germany").energy.grid.g_per_kwh == 381
    assert answer(forecast, grid_g_per_kwh=1.0).energy.grid.g_per_kwh == 1
    assert answer(tc.forecast("resnet18", "T4", 8, n_samples=1000)).energy.grid is None
    with pytest.raises(InputError, match="not both"):
        answer(forecast, region="Germany", grid_g_per_kwh=1.0)


def test_the_dictionary_holds_the_forecast_and_the_rest():
    (found,) = forecasts("resnet18", ["T4"], [8], n_samples=1000, region="world")
    data = found.to_dict()
    assert data["step_s"] == found.step_s
    assert data["energy_j"] == found.energy.total_j.p50
    assert data["intervals"]["co2_kg"][0] < data["co2_kg"] < data["intervals"]["co2_kg"][1]
    assert sum(data["bound_s"].values()) == pytest.approx(data["step_s"])
    assert data["version"] == tc.__version__
    without = replace(found.question.device, tdp_w=None)
    nothing = replace(found, question=replace(found.question, device=without)).to_dict()
    assert nothing["energy_j"] is None
    assert any("No energy estimate" in one for one in nothing["assumptions"])
