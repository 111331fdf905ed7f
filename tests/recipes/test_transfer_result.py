"""Which approach and rate wins, and by how much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.recipes.transfer_learning.result import TransferResult, Trial, outcomes_of


def result_of(*cells):
    """Cells: approach, rate, accuracies by seed (None: diverged)."""
    trials = [
        Trial(approach=approach, learning_rate=rate, seed=seed, accuracy=accuracy)
        for approach, rate, accuracies in cells
        for seed, accuracy in enumerate(accuracies)
    ]
    return TransferResult(
        outcomes=outcomes_of(trials), stage_seconds={}, stage_runs={}, n_test_samples=100, source_accuracy=None
    )


def test_the_best_mean_wins_with_its_interval():
    result = result_of(("fine-tune", 0.1, (0.7, 0.9)), ("fine-tune", 0.01, (0.90, 0.94)), ("frozen", 0.1, (0.8, 0.82)))
    assert (result.winner.approach, result.winner.learning_rate) == ("fine-tune", 0.01)
    assert result.winner.accuracy.mean == pytest.approx(0.92)
    assert result.winner.accuracy.low < 0.9 < 0.94 < result.winner.accuracy.high  # two seeds say little
    lead = result.lead_over("frozen")
    assert (lead.mean, lead.n) == (pytest.approx(0.11), 2)


def test_a_rate_at_which_a_run_diverged_does_not_win():
    result = result_of(("frozen", 1.0, (0.99, None)), ("frozen", 0.1, (0.6, 0.6)))
    assert result.winner.learning_rate == 0.1
    assert result.outcomes[0].accuracy.n == 1


def test_nobody_wins_where_all_runs_diverged():
    result = result_of(("fine-tune", 0.1, (None, None)))
    assert result.winner is None
    assert result.lead_over("frozen") is None


CELLS = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5)


@given(CELLS)
def test_no_mean_is_above_the_winners(cells):
    result = result_of(*[("frozen", 10.0**-place, accuracies) for place, accuracies in enumerate(cells)])
    assert result.winner.accuracy.mean == max(outcome.accuracy.mean for outcome in result.outcomes)
    assert result.lead_over("frozen").mean == 0
