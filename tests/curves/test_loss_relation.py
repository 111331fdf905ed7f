"""Accuracy from loss: the relation, and what it makes of a curve."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.curves.loss_relation import Pairs, learn_relation, pairs_of
from traincast.errors import InputError
from traincast.logs.log import Log, Series


def series(metric, steps, values, split="train"):
    return Series(
        name=f"{split}_{metric}", metric=metric, split=split, steps=np.asarray(steps), values=np.asarray(values)
    )


def loss_at(steps, level=1.0):
    return level * 4.0 * np.asarray(steps) ** -0.3


def error_at(loss, slope=0.5, level=0.8):
    return level * np.asarray(loss) ** slope


def run_log(until=20_000.0, every=100.0, *, level=1.0, has_accuracy=True, noise=0.0, split="train"):
    steps = np.arange(100.0, until + 1.0, 100.0)
    rng = np.random.default_rng(1)
    loss = loss_at(steps) * np.exp(noise * rng.standard_normal(len(steps)))
    found = [series("loss", steps, loss)]
    if has_accuracy:
        few = steps[steps % every == 0]
        found.append(series("accuracy", few, 1.0 - error_at(loss_at(few), level=0.8 * level), split))
    return Log(path="run.csv", format="csv", series=tuple(found))


def pairs(n=40, slope=0.5, level=0.8, first=2.0, last=0.2, noise=0.0):
    losses = np.geomspace(first, last, n)
    rest = noise * np.random.default_rng(2).standard_normal(n)
    return Pairs(np.log(losses), np.log(error_at(losses, slope, level)) + rest)


def test_a_line_of_logarithms_is_found_again():
    found = learn_relation(pairs(slope=0.7), [], below=2.0)
    assert found.is_line
    assert found.slopes[0] == pytest.approx(0.7, abs=0.02)
    assert found.accuracies(np.array([1.0, 0.1])) == pytest.approx(1 - error_at([1.0, 0.1], 0.7), abs=0.01)


def test_each_accuracy_is_paired_with_the_losses_around_it():
    loss = series("loss", [1, 2, 3, 10, 11, 12, 13], [9, 5, 1, 4, 3, 2, 99])
    found = pairs_of(loss, series("accuracy", [2, 12], [0.5, 0.75]))
    assert np.exp(found.log_losses) == pytest.approx([5.0, 3.5])  # medians within half of the 10 steps in between
    assert np.exp(found.log_errors) == pytest.approx([0.5, 0.25])


def test_an_accuracy_far_from_any_loss_has_no_pair():
    found = pairs_of(series("loss", [1, 2, 3], [3, 2, 1]), series("accuracy", [2, 4, 100], [0.1, 0.2, 0.9]))
    assert len(found) == 2


def test_only_the_end_of_what_was_seen_counts():
    """A run whose relation bends: its beginning has another slope."""
    first, last = pairs(slope=2.0, first=8.0, last=2.0), pairs(slope=0.5, first=1.9, last=0.5)
    both = Pairs(np.r_[first.log_losses, last.log_losses], np.r_[first.log_errors, last.log_errors])
    assert learn_relation(both, [], below=1.9).slopes[0] == pytest.approx(0.5, abs=0.03)


def test_where_a_line_is_poor_means_that_never_fall_take_its_place():
    losses = np.geomspace(2.0, 0.001, 120)
    saturated = Pairs(np.log(losses), np.log(np.maximum(error_at(losses, 0.8), 0.08)))
    found = learn_relation(saturated, [], below=2.0, is_same_data=False)
    assert not found.is_line
    assert "means that never fall" in str(found)
    assert found.accuracies(np.array([0.001, 0.0001])) == pytest.approx([0.92, 0.92], abs=0.01)
    assert found.accuracies(np.array([1.0])) == pytest.approx([0.2], abs=0.05)


def test_siblings_that_differ_make_a_wide_relation_and_own_pairs_narrow_it():
    siblings = [pairs(level=level) for level in (0.5, 0.8, 1.1)]
    alone = learn_relation(None, siblings, below=2.0)
    own = learn_relation(pairs(level=1.1), siblings, below=2.0)
    assert alone.sd > 2 * own.sd
    assert (alone.n_runs, own.n_runs) == (3, 4)
    assert own.accuracies(np.array([0.5])) == pytest.approx(1 - error_at([0.5], level=1.1), abs=0.02)


def test_few_pairs_take_the_usual_slope():
    one_place = Pairs(np.log([1.0, 1.0, 1.0]), np.log([0.5, 0.5, 0.5]))
    assert learn_relation(one_place, [], below=2.0).slopes[0] == pytest.approx(1.0)
    assert learn_relation(one_place, [], below=2.0, is_same_data=False).slopes[0] == pytest.approx(0.25)


def test_few_pairs_that_contradict_the_usual_slope_outweigh_it():
    """A loss that stays far above 0, as with smoothed labels, hardly moves while the errors halve."""
    losses, errors = np.array([1.88, 1.79, 1.74, 1.72, 1.70]), np.array([0.67, 0.50, 0.43, 0.38, 0.35])
    found = learn_relation(Pairs(np.log(losses), np.log(errors)), [], below=2.0, is_same_data=False)
    assert 4.0 < found.slopes[0] < 7.0
    assert found.accuracies(losses) == pytest.approx(1 - errors, abs=0.06)


def test_two_pairs_are_too_few():
    with pytest.raises(InputError, match="at least 3 pairs of both, but there are 2"):
        learn_relation(None, [pairs(2)], below=2.0)


def test_a_loss_below_zero_tells_no_accuracy():
    with pytest.raises(InputError, match="not above 0 everywhere"):
        pairs_of(series("loss", [1, 2, 3], [1, 0, -1]), series("accuracy", [1, 2, 3], [0.1, 0.2, 0.3]))


@given(
    st.lists(st.tuples(st.floats(1e-4, 50.0), st.floats(0.0, 1.0)), min_size=3, max_size=40),
    st.floats(1e-3, 50.0),
    st.floats(-3.0, 3.0),
)
def test_a_lower_loss_is_never_less_accurate(points, below, slope_error):
    losses, accuracies = np.array(points).T
    given_pairs = Pairs(np.log(losses), np.log(np.maximum(1 - accuracies, 1e-4)))
    found = learn_relation(given_pairs, [], below=below).accuracies(np.geomspace(1e-5, 100.0, 200), slope_error)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 1e-12).all()


def test_a_run_without_accuracy_gets_one_from_its_sibling():
    found = tc.converge(
        run_log(8_000, has_accuracy=False),
        metric="accuracy",
        target=0.45,
        total_steps=20_000,
        learning_rate="constant",
        relation_from=[run_log()],
    )
    real = 1 - float(error_at(loss_at(20_000)))
    assert found.end.p10 < real < found.end.p90
    assert found.end.p50 == pytest.approx(real, abs=0.02)
    assert found.arrival.steps.p10 < found.arrival.steps.p50 < found.arrival.steps.p90
    assert found.series.metric == "accuracy from loss"
    assert "accuracy from loss" in found.curve.family
    assert found.remarks[-1].startswith("Accuracy from loss: the curve of 'train_loss', through ")
    assert "of 1 run: a line with slope 0.5" in found.remarks[-1]
    assert found.to_dict()["metric"] == "accuracy from loss"


def test_a_run_with_few_accuracies_is_its_own_sibling():
    found = tc.converge(
        run_log(8_000, every=2_000, noise=0.01),
        metric="accuracy",
        target=0.45,
        total_steps=20_000,
        learning_rate="constant",
    )
    assert found.series.metric == "accuracy from loss"
    assert found.end.p10 < 1 - float(error_at(loss_at(20_000))) < found.end.p90
    assert "4 pairs of 1 run" in " ".join(found.remarks)


def test_enough_accuracies_are_continued_by_themselves():
    assert tc.converge(run_log(8_000, every=1_000), metric="accuracy").series.metric == "accuracy"


def test_the_split_may_be_in_the_name_of_the_metric():
    sibling, log = run_log(split="validation"), run_log(8_000, has_accuracy=False)
    found = tc.converge(log, metric="val_acc", total_steps=20_000, relation_from=[sibling])
    assert (found.series.metric, found.series.split) == ("accuracy from loss", "validation")


def test_a_sibling_without_accuracy_is_refused_by_name():
    with pytest.raises(InputError, match=r"'run.csv' has no accuracy, so it does not show"):
        tc.converge(run_log(), metric="accuracy", relation_from=[run_log(has_accuracy=False)])


def test_without_accuracy_and_siblings_there_is_no_answer():
    with pytest.raises(InputError, match="has no series 'accuracy'"):
        tc.converge(run_log(has_accuracy=False), metric="accuracy")


def test_all_runs_of_a_file_but_the_one_asked_about_are_siblings(tmp_path):
    path = tmp_path / "runs.csv"
    rows = ["run,step,loss,acc"]
    for name, level in (("a", 0.9), ("b", 1.1), ("c", 1.0)):
        for step in range(100, 5_001, 100):
            loss = float(loss_at(step))
            accuracy = "" if name == "c" else f"{1 - float(error_at(loss, level=0.8 * level)):.5f}"
            rows.append(f"{name},{step},{loss:.5f},{accuracy}")
    path.write_text("\n".join(rows) + "\n")
    found = tc.converge(path, metric="accuracy", relation_from=[path], reading={"run": "c"})
    assert any("of 2 runs" in remark for remark in found.remarks)


def test_few_accuracies_that_cannot_be_paired_are_continued_by_themselves():
    log = run_log(8_000, every=2_000)
    loss, accuracy = log.series
    below_zero = replace(log, series=(replace(loss, values=loss.values - 1.0), accuracy))
    elsewhere = replace(log, series=(replace(loss, steps=loss.steps + 1e6), accuracy))
    for one in (below_zero, elsewhere):
        assert tc.converge(one, metric="accuracy").series.metric == "accuracy"


def evaluated(steps, accuracies, *, until=5_000.0):
    """A run with a loss every 100 steps and a few evaluations, whose errors fall much faster than its loss tells."""
    every = np.arange(100.0, until + 1.0, 100.0)
    found = (series("loss", every, 1.5 + 6.0 * every**-0.4), series("accuracy", steps, accuracies, "validation"))
    return Log(path="run.csv", format="csv", series=found)


FEW = np.arange(1_000.0, 5_001.0, 1_000.0), np.array([0.334, 0.500, 0.573, 0.617, 0.647])


def test_a_run_is_where_its_last_evaluation_is_and_its_forecast_starts_near_it():
    run = tc.converge(evaluated(*FEW), metric="accuracy", total_steps=10_000)
    assert run.series.metric == "accuracy from loss"
    assert run.last_value == run.value == 0.647
    assert run.logged.values.tolist() == FEW[1].tolist()
    assert run.curve.predict(5_000) == pytest.approx(0.647, abs=0.02)
    over = tc.converge(evaluated(*FEW), metric="accuracy", total_steps=5_000)
    assert over.end.p10 == over.end.p90 == 0.647


def test_evaluations_that_have_stopped_do_not_tell_where_a_run_is_now():
    run = tc.converge(evaluated(*FEW, until=9_000.0), metric="accuracy", total_steps=10_000)
    assert run.last_value == run.series.values[-1] != 0.647


def test_an_evaluation_settles_a_target_also_where_others_are_told_from_the_loss():
    there = tc.converge(evaluated(*FEW), metric="accuracy", target=0.64, total_steps=10_000).arrival
    assert there.probability == 1.0
    assert 4_000 <= there.steps.p10 <= there.steps.p90 <= 5_000  # 0.617 at step 4,000 was not enough
    missed = tc.converge(evaluated(*FEW), metric="accuracy", target=0.66, total_steps=5_000).arrival
    assert (missed.probability, missed.steps.p10) == (0.0, np.inf)


def test_an_accuracy_that_nobody_measured_is_not_sure_to_be_reached():
    """The relation of siblings at different levels is off by more than the loss is noisy."""
    siblings = [run_log(level=level) for level in (0.9, 1.0, 1.1)]
    seen = run_log(8_000.0, has_accuracy=False)
    run = tc.converge(seen, metric="accuracy", total_steps=8_000, relation_from=siblings)
    there = tc.converge(
        seen, metric="accuracy", target=run.last_value - 0.005, total_steps=8_000, relation_from=siblings
    ).arrival
    assert 0.4 < there.probability < 0.9


def test_few_evaluations_of_a_run_whose_loss_has_a_floor_are_continued_as_they_went():
    """Errors fall as the root of the steps: 0.72 at step 10,000."""
    run = tc.converge(evaluated(*FEW), metric="accuracy", total_steps=10_000, learning_rate="constant")
    assert run.end.p10 < 0.721 < run.end.p90
    assert run.end.p50 > 0.68
