"""The curve of a model before it runs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from traincast.curves.size_transfer.charts import curve_chart, error_chart, parameter_chart
from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.transferred import predict_parameters
from traincast.errors import InputError
from traincast.report.json_ import to_json

STEPS = 50_000


def fit(depth, *, family="", gpu="A", noise=1.0, b2=0.02, epochs=True):
    return Fit(
        model=f"{family}{depth}",
        n_layers=depth,
        family=family,
        gpu=gpu,
        b0=2e-5 * depth**0.5 * noise,
        b1=1.2 * depth**-0.2,
        b2=b2,
        epochs=200 * depth**-0.4 if epochs else None,
    )


def law(steps, depth):
    return 1 / (2e-5 * depth**0.5 * steps + 1.2 * depth**-0.2) + 0.02


SEEN = [fit(depth, gpu=gpu, noise=noise) for depth in (20, 32, 44, 56) for gpu, noise in (("A", 0.98), ("B", 1.02))]


def test_a_law_that_the_siblings_share_gives_the_curve_of_another_size():
    found = predict_parameters(SEEN, 38, total_steps=STEPS)
    steps = np.array([1.0, 1_000.0, STEPS])
    assert found.curve.predict(steps) == pytest.approx(law(steps, 38), rel=0.03)
    low, high = found.curve.interval(steps)
    assert (low < law(steps, 38)).all()
    assert (law(steps, 38) < high).all()
    assert found.parameters["epochs"] == pytest.approx(200 * 38**-0.4, rel=0.05)


def test_steps_to_a_target_follow_with_their_interval():
    found = predict_parameters(SEEN, 38, total_steps=STEPS)
    real = (1 / 0.28 - 1.2 * 38**-0.2) / (2e-5 * 38**0.5)
    low, high = found.curve.interval_to(0.3)
    assert low < found.curve.steps_to(0.3) < high
    assert found.curve.steps_to(0.3) == pytest.approx(real, rel=0.05)


@pytest.mark.filterwarnings("error")
def test_a_size_far_from_all_siblings_gives_finite_numbers():
    wild = [fit(depth, noise=noise) for depth, noise in ((20, 1.0), (21, 1e20), (22, 1e-20))]
    wild = [replace(one, b0=one.b0 / 1e18) for one in wild]
    found = predict_parameters(wild, 10**15, total_steps=STEPS)
    assert all(np.isfinite([one.value, one.low, one.high]).all() for one in found.estimates.values())


def test_the_same_question_has_the_same_answer():
    one, other = (predict_parameters(SEEN, 38, total_steps=STEPS) for _ in range(2))
    assert one.parameters == other.parameters


def test_the_family_must_be_said_where_there_are_two():
    rows = [*SEEN, fit(18, family="wide")]
    with pytest.raises(InputError, match="2 families"):
        predict_parameters(rows, 38, total_steps=STEPS)
    with pytest.raises(InputError, match="No fit is of family 'tall'; there is '', 'wide'"):
        predict_parameters(rows, 38, total_steps=STEPS, family="tall")


def test_a_family_of_one_is_warned_of():
    found = predict_parameters([*SEEN, fit(18, family="wide")], 50, total_steps=STEPS, family="wide")
    assert any("only one model was run (18 layers)" in text for text in found.warnings)


def test_depths_outside_of_what_was_seen_are_warned_of():
    assert any("outside the range seen" in text for text in predict_parameters(SEEN, 110, total_steps=STEPS).warnings)
    assert predict_parameters(SEEN, 38, total_steps=STEPS).warnings == ()


def test_gpus_that_matter_are_warned_of_and_pooled():
    rows = [fit(depth, gpu=gpu, noise=noise) for depth in range(20, 90, 10) for gpu, noise in (("A", 1.0), ("B", 1.2))]
    found = predict_parameters(rows, 38, total_steps=STEPS)
    assert any("b0 differs between GPUs by 20.0%" in text for text in found.warnings)
    assert found.parameters["b0"] == pytest.approx(2e-5 * 38**0.5 * 1.2**0.5, rel=0.05)


def test_a_lowest_loss_at_its_bound_is_taken_from_the_rows():
    rows = [fit(depth, b2=1e-16 if depth > 20 else 0.04) for depth in (20, 32, 44, 56)]
    found = predict_parameters(rows, 38, total_steps=STEPS)
    assert set(np.unique(found.curve.members.b2)) == {0.0, 0.04}
    assert any("b2 is at its bound" in text for text in found.warnings)


def test_epochs_are_left_out_where_nobody_got_there():
    found = predict_parameters([fit(depth, epochs=False) for depth in (20, 32, 44)], 38, total_steps=STEPS)
    assert set(found.estimates) == {"b0", "b1", "b2"}


@pytest.mark.parametrize(("n_layers", "total_steps"), [(0, 10), (10, 0), (10, float("inf"))])
def test_a_model_has_layers_and_a_run_has_steps(n_layers, total_steps):
    with pytest.raises(InputError, match="A model needs layers and a run needs steps"):
        predict_parameters(SEEN, n_layers, total_steps=total_steps)


def test_the_answer_as_json_has_parameters_with_intervals_and_a_band():
    data = json.loads(to_json(predict_parameters(SEEN, 38, total_steps=STEPS).to_dict()))
    assert set(data["parameters"]["b0"]) == {"value", "p10", "p90"}
    assert len(data["curve"]["step"]) == len(data["curve"]["loss_p90"])
    assert data["n_models"] == 4
    assert data["hardware"][0]["n_gpus"] == 2


def test_charts_hold_the_band_the_others_and_the_error():
    found = predict_parameters(SEEN, 38, total_steps=STEPS)
    logged = {"logged": (np.array([0.0, 1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.5, 1.2]))}
    chart = curve_chart(found, {"real": lambda steps: law(steps, 38)}, logged=logged, unit="epoch")
    assert [series.name for series in chart.series] == ["logged", "transferred, p10 to p90", "real"]
    dots, band, _ = chart.series
    assert all(low < middle < high for low, middle, high in zip(band.low, band.y, band.high, strict=True))
    assert (dots.is_dots, list(dots.x), chart.x_label) == (True, [1.0, 2.0, 3.0], "epoch")  # no step 0 on a log axis
    errors = error_chart(found, lambda steps: law(steps, 38), {"twice": lambda steps: 2 * law(steps, 38)})
    assert errors.series[1].y == pytest.approx([1.0] * len(errors.series[1].y))
    assert max(errors.series[0].low) < 0 < min(errors.series[0].high)


def test_a_parameter_over_sizes_has_a_band_and_what_ran_as_dots():
    found = [predict_parameters(SEEN, depth, total_steps=STEPS) for depth in (56, 20)]
    chart = parameter_chart(SEEN, found, "b0")
    band, dots = chart.series
    assert (dots.is_dots, list(dots.x)) == (True, [20.0, 32.0, 44.0, 56.0])
    assert list(band.x) == [20.0, 56.0]
    assert band.high[0] == found[1].estimates["b0"].high


def test_another_size_than_depth_has_its_own_name():
    rows = [Fit(model=f"m{n}", n_layers=n, b0=1e-4, b1=0.5, b2=0.01) for n in (10_000_000, 20_000_000)]
    found = predict_parameters(rows, 90_000_000, total_steps=STEPS, size_name="parameters")
    assert "90,000,000 parameters are outside the range seen for this family" in found.warnings[0]
    assert parameter_chart(rows, [found], "b0").x_label == "parameters"
