"""Predicted against measured: both sides are cut alike and add up, and the verdict says what is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.forecasting.by_kind import KindTime, by_kind, predicted_by_kind
from traincast.planning.bound import measured_bound
from traincast.planning.gap import explain_gap
from traincast.planning.verdict import verdict
from traincast.records.measured_step import MeasuredStep

PHASES = ("forward", "loss", "backward", "optimizer")


@pytest.fixture(scope="module")
def forecast():
    return tc.forecast("cifar_resnet20", on="T4", batch_size=64, method="roofline")


@pytest.fixture(scope="module")
def predicted(forecast):
    return predicted_by_kind(forecast.question)


def as_predicted(forecast, predicted, factor=1.0, **changes):
    """A run that went as predicted, but for one factor and some kinds of work."""
    phases = {name: factor * getattr(forecast, f"{name}_s") for name in PHASES}
    work = {phase: {kind: factor * time.seconds for kind, time in kinds.items()} for phase, kinds in predicted.items()}
    return MeasuredStep(
        source="a test", **{"step_s": factor * forecast.step_s, "phases": phases, "work": work, **changes}
    )


def test_kinds_of_a_forecast_add_up_to_what_its_device_works(forecast, predicted):
    assert sum(time.seconds for time in by_kind(predicted).values()) == pytest.approx(forecast.device_s)
    assert set(predicted) == set(PHASES)
    assert set(predicted["optimizer"]) == {"optimizer"}


def test_accumulation_repeats_all_but_the_update():
    once = predicted_by_kind(tc.forecast("mnist_cnn", on="T4", batch_size=8, method="roofline").question)
    twice = predicted_by_kind(
        tc.forecast("mnist_cnn", on="T4", batch_size=16, accumulation_steps=2, method="roofline").question
    )
    for phase, factor in (("forward", 2), ("backward", 2), ("optimizer", 1)):
        for kind, time in once[phase].items():
            assert twice[phase][kind].seconds == pytest.approx(factor * time.seconds)
            assert twice[phase][kind].n_flop == factor * time.n_flop


def test_flop_of_all_kinds_are_those_of_the_step(forecast, predicted):
    trace = forecast.question.trace
    expected = trace.forward_flop(64) + trace.backward_flop(64)
    assert sum(time.n_flop for time in by_kind(predicted).values()) == pytest.approx(expected)


def test_both_sides_add_up_to_their_steps(forecast, predicted):
    gap = explain_gap(forecast, predicted, as_predicted(forecast, predicted, factor=1.5))
    for rows in (gap.phases, gap.kinds):
        assert sum(row.predicted_s for row in rows) == pytest.approx(forecast.step_s)
        assert sum(row.measured_s for row in rows) == pytest.approx(1.5 * forecast.step_s)


@given(factor=st.floats(0.1, 10))
def test_a_run_that_is_slower_alike_has_one_ratio_everywhere(factor):
    forecast = tc.forecast("mnist_cnn", on="T4", batch_size=64, method="roofline")
    predicted = predicted_by_kind(forecast.question)
    gap = explain_gap(forecast, predicted, as_predicted(forecast, predicted, factor=factor))
    for row in (*gap.phases, *gap.kinds, gap.step):
        assert row.ratio == pytest.approx(factor)


def test_the_largest_difference_comes_first_and_is_named(forecast, predicted):
    work = {phase: {kind: time.seconds for kind, time in kinds.items()} for phase, kinds in predicted.items()}
    work["forward"]["normalisation"] += 0.5 * forecast.step_s
    run = as_predicted(forecast, predicted, work=work, step_s=1.5 * forecast.step_s)
    gap = explain_gap(forecast, predicted, run)
    assert gap.kinds[0].name == "normalisation"
    told = " ".join(verdict(gap))
    assert "1.50 times as long, inside that interval" in told
    assert "slower than predicted in normalisation by" in told
    assert "faster" not in told.split("The run was bound")[0]


def test_what_is_faster_than_predicted_is_named_too(forecast, predicted):
    told = " ".join(verdict(explain_gap(forecast, predicted, as_predicted(forecast, predicted, factor=0.5))))
    assert "0.50 times as long" in told
    assert "faster than predicted in convolution backward by" in told


def test_a_run_as_predicted_agrees_and_has_no_difference_to_place(forecast, predicted):
    told = verdict(explain_gap(forecast, predicted, as_predicted(forecast, predicted)))
    assert told[0].endswith("they agree to within 5 %.")
    assert told[1].startswith("The run was bound by")


def test_without_a_mark_between_them_forward_and_loss_are_one(forecast, predicted):
    phases = {"forward": 2.0, "backward": 1.0}
    gap = explain_gap(forecast, predicted, as_predicted(forecast, predicted, phases=phases, step_s=3.0))
    first = gap.phases[0]
    assert first.name == "forward and loss"
    assert first.predicted_s == pytest.approx(forecast.forward_s + forecast.loss_s)
    assert first.measured_s == 2.0


def test_a_step_alone_is_still_compared(forecast, predicted):
    gap = explain_gap(forecast, predicted, MeasuredStep(source="rows.csv", step_s=2 * forecast.step_s))
    assert gap.step.ratio == pytest.approx(2)
    assert not gap.has_kinds
    assert all(row.measured_s is None for row in (*gap.phases, *gap.kinds))
    assert measured_bound(gap) is None
    assert any("does not show what bound the run" in sentence for sentence in verdict(gap))


def test_without_a_measurement_the_forecast_is_told(forecast, predicted):
    gap = explain_gap(forecast, predicted, None)
    (sentence,) = verdict(gap)
    assert sentence.startswith(f"Predicted to be bound by {forecast.bound_by}")
    assert gap.kinds[0].name in sentence


def shares(forecast, predicted, **seconds):
    """A run of one second with so much of it spent on each."""
    phases = {phase: seconds.pop(phase) for phase in ("input", "communication", "copy") if phase in seconds}
    work = {"forward": {kind.replace("_", " "): value for kind, value in seconds.items()}}
    return explain_gap(forecast, predicted, MeasuredStep(source="", step_s=1.0, phases=phases, work=work))


@pytest.mark.parametrize(
    ("seconds", "by"),
    [
        ({"input": 0.6, "convolution": 0.4}, "input"),
        ({"input": 0.35, "communication": 0.4, "convolution": 0.25}, "communication"),
        ({"input": 0.2, "convolution": 0.8}, "compute"),
        ({"convolution": 0.3}, "host"),
        ({"input": 0.25, "convolution": 0.3}, "compute"),
        ({"elementwise": 0.7, "convolution": 0.1}, "memory"),
        ({"convolution": 0.7, "elementwise": 0.1}, "compute"),
        ({"attention": 0.9}, "compute"),
        ({"embedding": 0.9}, "memory"),
    ],
)
def test_a_run_is_bound_by_what_takes_its_time(forecast, predicted, seconds, by):
    gap = shares(forecast, predicted, **seconds)
    assert measured_bound(gap).by == by
    assert any(f"bound by {'the ' if by in ('host', 'input') else ''}{by}" in sentence for sentence in verdict(gap))


def test_input_binds_even_where_kinds_of_work_were_not_looked_at(forecast, predicted):
    run = MeasuredStep(source="", step_s=1.0, phases={"input": 0.7, "forward": 0.3})
    assert measured_bound(explain_gap(forecast, predicted, run)).by == "input"


def test_rates_are_those_of_the_run(forecast, predicted):
    gap = explain_gap(forecast, predicted, as_predicted(forecast, predicted, factor=2.0))
    row = next(row for row in gap.kinds if row.name == "convolution")
    assert row.flop_per_s == pytest.approx(row.work.n_flop / row.measured_s)
    assert row.bytes_per_s == pytest.approx(row.work.n_bytes / row.measured_s)


def test_more_than_the_peak_of_a_device_is_not_believed(forecast, predicted):
    told = " ".join(verdict(explain_gap(forecast, predicted, as_predicted(forecast, predicted, factor=1e-3))))
    assert "which is impossible" in told


def test_works_of_one_kind_add_up():
    assert KindTime(1.0, 0.5, 10.0, 2.0) + KindTime(1.0, 0.0, 5.0, 1.0) == KindTime(2.0, 0.5, 15.0, 3.0)
