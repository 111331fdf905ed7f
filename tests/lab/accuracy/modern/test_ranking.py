"""Which GPU is faster: measured pairs beside the forecast."""

import pytest

from lab.accuracy.modern.left_out_page import agreement_table
from lab.accuracy.modern.ranking import Order, Timed, agreement_of

RESNET = ("resnet50", "amp-fp16", "128")


def test_a_pair_that_the_forecast_turns_round_is_named():
    rows = [Timed(RESNET, "A100-SXM4-80GB", 1.0, 1.2), Timed(RESNET, "RTX-4090", 1.5, 1.0)]
    found = agreement_of("examples", rows)
    assert (found.n_pairs, found.n_clear, found.n_agreeing) == (1, 1, 0)
    wrong = found.disagreements[0]
    assert (wrong.faster, wrong.slower) == ("A100-SXM4-80GB", "RTX-4090")
    assert wrong.observed_ratio == pytest.approx(1.5)
    assert "| resnet50, amp-fp16, 128 | A100-SXM4-80GB | RTX-4090 | +50.0 | -16.7 |" in agreement_table(
        [found], [found]
    )


def test_measurements_within_a_tenth_of_each_other_are_no_order():
    found = agreement_of("examples", [Timed(RESNET, "T4", 1.0, 2.0), Timed(RESNET, "P4", 1.09, 1.0)])
    assert (found.n_pairs, found.n_clear, found.disagreements) == (1, 0, ())


def test_repeats_on_one_gpu_count_as_their_median_and_other_things_are_not_compared():
    rows = [Timed(RESNET, "T4", seconds, 3.0) for seconds in (1.0, 2.9, 3.0)]
    rows += [Timed(RESNET, "A10", 1.5, 1.0), Timed(("bert",), "L4", 9.0, 9.0)]
    found = agreement_of("examples", rows)
    assert (found.n_pairs, found.n_agreeing) == (1, 1)


def test_the_order_counts_every_column_alike():
    assert Order("T4", (1.0, 100.0)).speed == pytest.approx(0.1)
