"""Curves of strangers: what is one curve, how far it goes, and which way is better."""

import numpy as np
import pytest

from lab.accuracy.law_curves import curves_of, evenly


def lines(values, **changes):
    usual = {"family": "a family", "run": "a run", "split": "val", "metric": "loss", "epoch": "", "seen": "", "lr": ""}
    return [usual | {"step": str(place), "value": str(value)} | changes for place, value in enumerate(values, start=1)]


def test_a_curve_is_one_metric_of_one_split_of_one_run():
    rows = lines([3, 2, 1]) + lines([4, 2], split="train") + lines([0.1, 0.5], metric="accuracy")

    found = curves_of("someone", rows)

    assert [(each.split, each.metric, each.final) for each in found] == [
        ("train", "loss", 2.0),
        ("val", "accuracy", 0.5),
        ("val", "loss", 1.0),
    ]
    assert [each.is_rising for each in found] == [False, True, False]


def test_parts_of_a_curve_that_its_authors_fitted_and_left_are_one_curve():
    fitted, left = (lines([value], metric="loss_or_error", split=split) for value, split in ((3, "fit"), (1, "rest")))
    left[0]["step"] = "2"

    (found,) = curves_of("someone", left + fitted)

    assert found.values.tolist() == [3.0, 1.0]


def test_steps_are_samples_where_no_step_was_written_and_the_last_value_of_a_step_counts():
    rows = lines([3, 2, 1, 0.5, "nan"], step="")
    for row, seen in zip(rows, ("10", "20", "20", "30", "40"), strict=True):
        row["seen"] = seen

    (found,) = curves_of("someone", rows)

    assert found.steps.tolist() == [10.0, 20.0, 30.0]
    assert found.values.tolist() == [3.0, 1.0, 0.5]
    assert curves_of("someone", lines([3, 2], step="")) == []


def test_rates_are_told_where_all_were_logged():
    assert curves_of("someone", lines([3, 2], lr="0.1"))[0].rates.tolist() == [0.1, 0.1]
    assert curves_of("someone", lines([3, 2], lr="0.1") + lines([3], run="other"))[0].rates is not None
    rows = lines([3, 2], lr="0.1")
    rows[1]["lr"] = ""
    assert curves_of("someone", rows)[0].rates is None


@pytest.mark.parametrize(("family", "is_rising", "target"), [("rnnt", False, 0.058), ("resnet", True, 0.759)])
def test_quality_of_mlperf_is_what_its_rules_say_of_the_task(family, is_rising, target):
    (found,) = curves_of("mlperf", lines([0.5, 0.7], family=family, metric="eval_accuracy"))

    assert (found.is_rising, found.target) == (is_rising, target)


def test_a_metric_that_nobody_knows_rises_if_its_values_do():
    rising, falling = (
        curves_of("someone", lines(values, metric="precision(B)"))[0] for values in ([1, 2, 3], [3, 2, 1])
    )

    assert rising.kind is falling.kind is None
    assert (rising.is_rising, falling.is_rising) == (True, False)


def test_a_family_has_at_most_so_many_curves_and_always_the_same_from_first_to_last():
    rows = [row for number in range(10) for row in lines([3, 2], run=f"run {number}")]
    curves = curves_of("someone", rows + lines([3, 2], family="b family"))

    chosen = evenly(curves, of_family=4, of_all=8)

    assert [each.run for each in chosen] == ["run 0", "run 3", "run 6", "run 9", "a run"]
    assert [each.run for each in evenly(curves, of_family=4, of_all=8)] == [each.run for each in chosen]
    assert len(evenly(curves, of_family=100, of_all=100)) == 11
    assert [each.run for each in evenly(curves, of_family=100, of_all=4)] == ["run 0", "run 9", "a run"]


def test_the_final_value_is_the_mean_of_the_last_fiftieth():
    (found,) = curves_of("someone", lines(np.r_[np.ones(98), 3.0, 5.0].tolist()))

    assert found.final == 4.0
