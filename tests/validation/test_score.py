"""From blocks to measured sets: baselines, intervals, views, documents."""

from dataclasses import replace

import numpy as np
import pytest

from lab.accuracy.subsets import joined
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import shipped
from traincast.report.text import to_text
from traincast.validation.bad_cases import worst_groups, worst_rows
from traincast.validation.baselines import ideal_seconds, left_out_fits, paleo_fit, scaled_fit, two_rates_fit
from traincast.validation.block_file import read_block, write_block
from traincast.validation.document import breakdown, choose, data_of, document_of
from traincast.validation.measured_set import MeasuredSet, Prediction
from traincast.validation.score import foreign_floor_s, measured_models, measured_ops
from traincast.validation.splits import splits_of


def _scored(ops, steps):
    splits = splits_of([ops, steps])
    fits = [shipped().coefficients] * len(splits)
    nothing = np.full(steps.n_rows, np.nan)
    extra = {
        "paleo_scaled_s": 0.5 * steps.observed_s,
        "paleo_update_s": 0.0 * steps.observed_s,
        "layerwise_s": np.where(steps.tags["device"] == "T4", steps.observed_s, nothing),
    }
    return [measured_ops(ops, splits, fits), measured_models(steps, extra, splits, fits)]


def test_rows_at_the_floor_are_not_scored(ops, steps):
    is_floor = np.arange(ops.n_rows) == 0
    (measured, _) = _scored(replace(ops, tags=ops.tags | {"is_floor": is_floor}), steps)
    assert measured.n_rows == ops.n_rows - 1


def test_ours_is_judged_with_the_gpu_left_out_and_shown_with_all_seen(ops, steps):
    for measured in _scored(ops, steps):
        assert measured.prediction().left_out == "GPU"
        assert measured.prediction(left_out="nothing").seconds == pytest.approx(measured.observed_s)
        assert measured.summary().coverage_fraction == 1.0


def test_paleo_with_its_ppp_fitted_elsewhere(ops, steps):
    measured = _scored(ops, steps)[1]
    assert measured.prediction("paleo").seconds == pytest.approx(measured.observed_s)  # PPP is 0.5 everywhere


def test_a_method_that_refuses_rows_is_no_best_baseline(ops, steps):
    measured = _scored(ops, steps)[1]
    assert measured.summary(measured.prediction("layerwise")).n_unanswered == 4 * 3
    assert measured.best_baseline.method == "paleo"


def test_the_roofline_divides_by_peak_and_bandwidth(ops):
    compute_s, memory_s = ideal_seconds(ops)
    t4 = find_device("T4")
    assert compute_s[0] == pytest.approx(1e3 / t4.peak_flop_per_s("fp32"))
    assert memory_s[0] == pytest.approx(1e6 / t4.memory_bytes_per_s)


def test_a_fitted_factor_comes_from_the_other_units():
    base_s, observed_s = np.ones(4), np.array([2.0, 2.0, 5.0, 5.0])
    units = np.array(["a", "a", "b", "b"])
    found = left_out_fits(units, np.ones(4, dtype=bool), scaled_fit(base_s, observed_s))
    assert found.tolist() == [5.0, 5.0, 2.0, 2.0]
    alone = left_out_fits(units[:2], np.ones(2, dtype=bool), scaled_fit(base_s[:2], observed_s[:2]))
    assert np.isnan(alone).all()


def test_two_rates_are_found_and_never_negative():
    rng = np.random.default_rng(1)
    flop_s, bytes_s = rng.uniform(1, 2, 20), rng.uniform(1, 2, 20)
    everything = np.ones(20, dtype=bool)
    truth = 3 * flop_s + 0.5 * bytes_s
    assert two_rates_fit(flop_s, bytes_s, truth)(everything) == pytest.approx(truth)
    falling = 3 * flop_s - 0.5 * bytes_s
    assert (two_rates_fit(flop_s, bytes_s, falling)(everything) / flop_s).std() == pytest.approx(0, abs=1e-9)


def test_ppp_is_at_most_one():
    fit = paleo_fit(np.array([4.0]), np.array([1.0]), np.array([3.0]))  # would need a PPP of 2
    assert fit(np.array([True])).tolist() == [5.0]


def test_a_foreign_floor_is_the_median_of_the_other_devices(ops):
    floors = {"T4": 1.0, "V100-PCIe-32GB": 2.0, "V100-SXM2-16GB": 4.0, "A10": 8.0}
    block = replace(ops, floor_s=np.array([floors[name] for name in ops.tags["device"]]))
    found = dict(zip(ops.tags["device"].tolist(), foreign_floor_s(block).tolist(), strict=True))
    assert found == {"T4": 4.0, "V100-PCIe-32GB": 4.0, "V100-SXM2-16GB": 2.0, "A10": 2.0}


def test_a_block_reads_back_under_its_key_only(steps, tmp_path):
    path = tmp_path / "block.npz"
    write_block(path, steps, {"paleo_scaled_s": steps.observed_s}, key="one")
    block, extra = read_block(path, key="one")
    coefficients = shipped().coefficients
    assert block.predict(coefficients).tolist() == steps.predict(coefficients).tolist()
    assert (block.name, block.devices, block.tf32) == (steps.name, steps.devices, steps.tf32)
    assert block.tags["family"].tolist() == steps.tags["family"].tolist()
    assert extra["paleo_scaled_s"].tolist() == steps.observed_s.tolist()
    assert read_block(path, key="other") is None
    path.write_bytes(b"half a file")
    assert read_block(path, key="one") is None
    assert read_block(tmp_path / "none.npz", key="one") is None


def _hand_made():
    return MeasuredSet(
        name="gemm",
        observed_s=np.ones(6),
        tags={"device": np.array(["T4"] * 3 + ["P4"] * 3), "family": np.array(["x"] * 6)},
        predictions=(
            Prediction(method="traincast", left_out="GPU", seconds=np.array([1, 1, 1.1, 2, 2, 3])),
            Prediction(method="roofline", left_out="-", seconds=np.full(6, 0.5)),
        ),
    )


def test_bad_cases_are_named():
    (group,) = worst_groups(_hand_made(), "device")
    assert (group.group, group.n, group.median_absolute_fraction) == ("P4", 3, 1.0)
    (row,) = worst_rows([_hand_made()], most=1)
    assert (row.row, row.error_fraction) == ("x, P4", 2.0)


def test_forward_and_backward_add_up():
    training = MeasuredSet(
        name="training",
        observed_s=np.array([1.0, 2.0]),
        tags={
            "part": np.array(["forward", "backward"]),
            "device": np.array(["T4", "T4"]),
            "family": np.array(["x", "x"]),
            "batch": np.array(["8", "8"]),
        },
        predictions=(
            Prediction(method="traincast", left_out="GPU", seconds=np.array([1.5, 1.5]), log_sd=np.array([0.1, 0.2])),
        ),
    )
    both = joined(training, name="both")
    assert (both.observed_s.tolist(), both.prediction().seconds.tolist()) == ([3.0], [3.0])  # two errors that cancel
    assert both.prediction().log_sd == pytest.approx([0.15])


def test_the_document_has_a_row_a_set_and_method_and_a_breakdown():
    text = to_text(document_of([_hand_made()], by="device"))
    assert "gemm  traincast  GPU" in text
    assert "Errors by device" in text
    data = data_of([_hand_made()], by="device")
    assert [row["device"] for row in data["by_device"]] == ["P4", "T4"] * 2
    assert data["sets"][1]["median_absolute_fraction"] == 0.5


def test_sets_and_methods_are_chosen_by_name():
    (chosen,) = choose([_hand_made()], ["gemm"], ["roofline"])
    assert chosen.methods == ("roofline",)
    with pytest.raises(InputError, match=r"no set 'gem'. Close names: gemm"):
        choose([_hand_made()], ["gem"], [])
    with pytest.raises(InputError, match="no method 'magic'"):
        choose([_hand_made()], [], ["magic"])
    with pytest.raises(InputError, match="told apart by op"):
        breakdown([_hand_made()], "op")
