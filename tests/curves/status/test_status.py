"""A run at one moment: progress, what is left, the target, alarms, and rules to stop by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.curves.log_question import LogQuestion
from traincast.curves.status.status import status_of
from traincast.curves.status.status_line import line_of
from traincast.curves.status.stop_rule import StopRule, read_rule
from traincast.errors import InputError
from traincast.logs.follow import LogFollower
from traincast.logs.log import Divergence, Log, Series

STEPS = np.arange(10.0, 1001.0, 10.0)


def falling(steps=STEPS):
    """A loss that halves its distance to 1 again and again, with a little noise that is always the same."""
    return 1.0 + 4.0 * (steps / 10.0) ** -0.5 + 0.01 * np.sin(7.0 * steps)


def log_of(values=None, *, step_s=2.0, steps=STEPS, **facts):
    loss = falling(steps) if values is None else np.asarray(values, float)
    series = Series(name="loss", metric="loss", split="train", steps=steps, values=loss, seconds=step_s * steps)
    more = facts.pop("more", ())
    return Log(path="run.csv", format="csv", series=(series, *more), **facts)


def test_progress_time_and_cost_follow_from_the_pace():
    status = status_of(log_of(), LogQuestion(total_steps=4000, usd_per_hour=6.0))
    assert (status.step, status.progress, status.is_over) == (1000.0, 0.25, False)
    assert status.left_s.p10 < status.left_s.p50 < status.left_s.p90
    assert status.left_s.p50 == pytest.approx(6000.0)
    assert status.left_usd.p50 == pytest.approx(10.0)
    assert status.end.p10 < status.value


def test_a_target_has_a_probability_a_time_and_a_cost():
    status = status_of(log_of(), LogQuestion(total_steps=4000, target=1.3, usd_per_hour=6.0))
    there = status.arrival
    assert there.probability > 0.8
    assert 1000 < there.steps.p50 < 4000
    assert there.from_now_s.p50 == pytest.approx(2.0 * (there.steps.p50 - 1000), rel=0.2)
    assert there.cost_usd.p50 == pytest.approx(there.from_now_s.p50 * 6.0 / 3600)
    assert status_of(log_of(), LogQuestion(total_steps=4000, target=0.2)).arrival.probability < 0.1


def test_time_until_the_target_counts_from_the_last_row_of_any_series():
    """An evaluation every 200 steps is the series; the training rows say that the run is further."""
    places = np.arange(100.0, 801.0, 100.0)
    evaluated = Series(name="v", metric="loss", split="validation", steps=places, values=falling(places))
    early = status_of(log_of(more=(evaluated,)), LogQuestion(target=1.2, metric="loss", split="validation"))
    from_evaluation_s = 2.0 * (early.arrival.steps.p50 - 800)
    assert early.step == 1000.0
    assert early.arrival.from_now_s.p50 < from_evaluation_s


def test_the_length_may_be_given_in_epochs_or_be_in_the_log():
    assert status_of(log_of(steps_per_epoch=100.0), LogQuestion(n_epochs=20)).total_steps == 2000
    assert status_of(log_of(steps_per_epoch=100.0), LogQuestion()).epochs == 10.0
    assert status_of(log_of(total_steps=5000), LogQuestion()).total_steps == 5000
    assert status_of(log_of(steps_per_epoch=100.0, n_epochs=30.0), LogQuestion()).total_steps == 3000


@pytest.mark.parametrize(("total", "is_over"), [(1000, True), (1001, True), (1002, False), (None, False)])
def test_a_run_is_over_at_its_last_step_also_if_it_counts_from_0(total, is_over):
    assert status_of(log_of(), LogQuestion(total_steps=total)).is_over is is_over


def test_few_points_have_a_pace_but_no_curve_yet():
    status = status_of(log_of(steps=STEPS[:3]), LogQuestion(total_steps=100, target=1.0))
    assert (status.curve, status.end, status.arrival) == (None, None, None)
    assert status.left_s.p50 == pytest.approx(140.0)


def test_without_a_clock_the_expected_step_tells_the_time():
    bare = Log(
        path="", format="csv", series=(Series(name="l", metric="loss", split="train", steps=STEPS, values=falling()),)
    )
    assert status_of(bare, LogQuestion(total_steps=2000)).left_s is None
    assert status_of(bare, LogQuestion(total_steps=2000, step_s=0.5)).left_s.p50 == pytest.approx(500.0)


def alarms(log, **asked):
    return [sentence.partition(":")[0] for sentence in status_of(log, LogQuestion(**asked)).warnings]


def test_a_healthy_run_raises_no_alarm():
    assert alarms(log_of(), total_steps=4000, step_s=2.0) == []


def test_a_loss_that_rises_is_diverging():
    values = np.where(STEPS < 700, falling(), falling() + (STEPS - 700) / 100)
    assert "Diverging" in alarms(log_of(values))


def test_a_loss_that_overfits_by_a_tenth_or_jumps_once_is_not_diverging():
    overfits = np.where(STEPS < 700, falling(), falling()[STEPS < 700][-1] * (1 + 0.1 * (STEPS - 700) / STEPS[-1]))
    jumps = falling().copy()
    jumps[-2:] *= 1.5
    for values in (overfits, jumps):
        assert "Diverging" not in alarms(log_of(values))


def test_an_accuracy_that_falls_is_diverging_and_one_that_rises_is_not():
    def run(values):
        series = Series(name="acc", metric="accuracy", split="train", steps=STEPS, values=values)
        return Log(path="", format="csv", series=(series,))

    rises = 0.9 - 0.6 * (STEPS / 10) ** -0.5
    assert alarms(run(rises)) == []
    assert "Diverging" in alarms(run(rises[::-1]))


def test_values_that_are_not_finite_any_more_have_diverged():
    series = Series(
        name="loss",
        metric="loss",
        split="train",
        steps=STEPS,
        values=falling(),
        n_not_finite=3,
        first_not_finite_step=1010.0,
        divergence=Divergence(first_step=1010.0, last_step=1030.0, n_rows=3),
    )
    assert alarms(Log(path="", format="csv", series=(series,))) == ["Diverged"]


def diverged(n_rows, *, values=None, steps=STEPS, more=()):
    """A run whose last rows are not finite, each of 20 s."""
    last = float(steps[-1])
    gone = Divergence(
        first_step=last + 10, last_step=last + 10 * n_rows, n_rows=n_rows, last_s=2 * last + 20.0 * n_rows
    )
    loss = falling(steps) if values is None else values
    series = Series("loss", "loss", "train", steps, loss, seconds=2.0 * steps, divergence=gone)
    return Log(path="run.csv", format="csv", series=(series, *more))


def test_a_run_that_has_diverged_goes_on_without_a_value_and_without_a_chance():
    status = status_of(diverged(30), LogQuestion(total_steps=4000, target=1.3))
    assert (status.step, status.spent_s) == (1300.0, 2600.0)
    assert (status.end, status.arrival.probability, status.arrival.steps.p10) == (None, 0.0, np.inf)
    data = status.to_dict()
    assert (data["diverged_step"], data["end"]) == (1010.0, None)
    assert np.isnan([data["value"], data["last_value"]]).all()
    assert line_of(status).startswith("step 1,300 of 4,000 (32.5 %), loss not finite, diverged, ")
    assert not [remark for remark in status.remarks if "learning rate" in remark]


def test_a_target_that_was_reached_before_the_divergence_stays_reached():
    there = status_of(diverged(30), LogQuestion(target=2.0)).arrival
    assert there.probability == 1.0
    assert there.steps.p90 < 1000


def test_a_training_loss_that_is_not_finite_is_the_end_of_every_metric():
    places = np.arange(100.0, 1001.0, 100.0)
    accuracy = Series("val_acc", "accuracy", "validation", places, 0.9 - 0.5 * (places / 100) ** -0.5)
    status = status_of(diverged(30, more=(accuracy,)), LogQuestion(metric="accuracy", target=0.85, total_steps=4000))
    assert status.warnings[0] == "Diverged: 'loss' is not finite since step 1,010."
    assert status.arrival.probability == 0.0
    assert status.last_value == accuracy.values[-1]


@pytest.mark.parametrize("n_points", [2, 10])
def test_a_rule_sees_a_divergence_however_early_it_is(n_points):
    status = status_of(diverged(3, steps=STEPS[:n_points]), LogQuestion(target=1.0, total_steps=100_000))
    assert StopRule("p(target)", True, 0.05).holds(status)
    assert StopRule("loss", False, 100.0).holds(status)


def test_one_row_that_is_not_finite_may_be_a_step_that_was_skipped():
    assert not status_of(diverged(1), LogQuestion()).is_lost
    assert status_of(diverged(1), LogQuestion(), silent_s=1000.0).is_lost
    assert status_of(diverged(3), LogQuestion()).is_lost
    assert not status_of(log_of(), LogQuestion(), silent_s=1000.0).is_lost


def test_a_loss_that_moves_no_more_is_on_a_plateau():
    values = 1.0 + 4.0 * np.exp(-STEPS / 20.0) + 0.001 * np.sin(STEPS)
    assert "Plateau" in alarms(log_of(values), learning_rate="constant")


def test_a_step_that_takes_longer_than_expected_is_told_with_its_factor():
    status = status_of(log_of(), LogQuestion(step_s=1.0))
    assert status.slower == pytest.approx(2.0)
    assert status.warnings[0].startswith("Slower than forecast: a step takes 2.00 s, 2.00 times")


def test_waiting_for_data_is_told_where_the_log_has_it():
    def waits(seconds):
        return Series(name="w", metric="data_wait", split="train", steps=STEPS, values=np.full(len(STEPS), seconds))

    assert alarms(log_of(data_wait=waits(1.0))) == ["Input-bound"]
    assert alarms(log_of(data_wait=waits(0.1))) == []


def test_a_log_that_is_silent_for_long_is_told():
    assert not status_of(log_of(), LogQuestion(), silent_s=100.0).warnings
    (told,) = status_of(log_of(), LogQuestion(), silent_s=1000.0).warnings
    assert told == "Silent: nothing was logged for 16.7 min; rows usually come every 20.0 s."


@pytest.mark.parametrize("total", [1000, 1010], ids=["at its last step", "whose last step has no row"])
def test_a_run_that_is_over_is_silent_for_good(total):
    status = status_of(log_of(), LogQuestion(total_steps=total), silent_s=5000.0)
    assert status.is_over
    assert not status.warnings


def test_the_line_says_where_the_run_is_and_when_it_ends():
    line = line_of(
        status_of(log_of(steps_per_epoch=100.0), LogQuestion(total_steps=4000, target=1.3, usd_per_hour=6.0))
    )
    assert line.startswith("step 1,000 of 4,000 (25.0 %), epoch 10.0, loss 1.4")
    for part in ("at the end ", ", 1.67 h (1.6", " left, $10.00 to go", "p(1.3) ", " in "):
        assert part in line
    assert line_of(status_of(log_of(), LogQuestion(total_steps=1000))).endswith(", over")
    assert line_of(status_of(log_of(), LogQuestion(total_steps=1000, target=1.6))).endswith(", p(1.6) 100.0 %, over")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p(target) < 0.05", "p(target) < 0.05"),
        (" p( target )<.05 ", "p(target) < 0.05"),
        ("loss > 3", "loss > 3"),
        ("eta_s > 1e5", "eta_s > 100000"),
        ("slower > 1.5", "slower > 1.5"),
    ],
)
def test_rules_are_a_name_a_sign_and_a_number(text, shown):
    assert str(read_rule(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "p(target)", "p(target) <= 0.05", "loss > x", "loss > nan", "__import__('os')", "1 < loss"]
)
def test_what_is_no_rule_is_told_in_one_sentence(text):
    with pytest.raises(InputError, match=r"stop_if cannot be .*: give one of p\(target\), loss, eta_s, slower"):
        read_rule(text)


@pytest.mark.parametrize(
    ("text", "needs"), [("p(target) < 0.1", "a target"), ("slower > 2", "the expected time of a step")]
)
def test_a_rule_needs_what_it_is_about(text, needs):
    assert needs in read_rule(text).lacking(LogQuestion())
    assert read_rule(text).lacking(LogQuestion(target=1.0, step_s=1.0)) is None


def test_rules_are_judged_by_what_the_status_says():
    status = status_of(log_of(), LogQuestion(total_steps=4000, target=0.2, step_s=1.0))
    assert StopRule("p(target)", True, 0.1).holds(status)
    assert not StopRule("p(target)", False, 0.1).holds(status)
    assert StopRule("eta_s", False, 5000.0).holds(status)
    assert StopRule("slower", False, 1.5).holds(status)
    assert StopRule("loss", False, 1.0).holds(status)
    assert not StopRule("loss", True, 1.0).holds(status)


def test_the_first_points_of_a_run_are_not_judged():
    rule = StopRule("loss", False, 0.0)
    assert not rule.holds(status_of(log_of(steps=STEPS[:10]), LogQuestion(total_steps=4000)))
    assert rule.holds(status_of(log_of(steps=STEPS[:10]), LogQuestion(total_steps=400)))
    assert rule.holds(status_of(log_of(steps=STEPS[:20]), LogQuestion()))


def test_a_rule_on_the_loss_needs_a_loss():
    series = Series(name="acc", metric="accuracy", split="train", steps=STEPS, values=STEPS / 2000)
    status = status_of(Log(path="", format="csv", series=(series,)), LogQuestion())
    rule = StopRule("loss", False, 0.0)
    assert "use the metric loss" in rule.missing(status)
    assert not rule.holds(status)


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"total_steps": 0}, "total_steps"), ({"n_epochs": -1}, "n_epochs"), ({"step": 0.0}, "step"),
     ({"usd_per_hour": -1.0}, "usd_per_hour"), ({"target": float("nan")}, "target")],
)  # fmt: skip
def test_what_cannot_be_asked_is_told(asked, words):
    with pytest.raises(InputError, match=f"{words} cannot be"):
        tc.converge(log_of(), **asked)


@pytest.mark.parametrize("asked", [{"usd_per_hour": -1.0}, {"target": float("nan")}, {"metric": 3}, {"split": "dev"}])
def test_what_a_callback_cannot_ask_is_told(asked):
    with pytest.raises(InputError, match=next(iter(asked))):
        LogQuestion(**asked)


@given(total=st.integers(1001, 100_000), step_s=st.floats(1e-3, 1e3))
def test_time_left_is_in_proportion_to_the_steps_left(total, step_s):
    status = status_of(log_of(step_s=step_s), LogQuestion(total_steps=total))
    assert status.left_s.p50 == pytest.approx((total - 1000) * step_s)


def test_right_after_a_restart_the_time_left_is_that_of_the_steps_to_repeat(tmp_path):
    """Steps go back by 200, after an hour in which the run was away: these 200 are still to do, the hour is gone."""
    file = tmp_path / "run.csv"
    rows = [f"{step:.0f},{loss:.4f},{step:.1f}" for step, loss in zip(STEPS, falling(), strict=True)]
    file.write_text("\n".join(["step,loss,seconds", *rows, ""]))
    follower = LogFollower(file)
    before = status_of(follower.poll(), LogQuestion(total_steps=2000))
    assert before.left_s.p50 == pytest.approx(1000.0)
    with file.open("a") as out:
        out.writelines(f"{step},{falling(np.array(step)):.4f},{3600 + 200 + step}\n" for step in (810, 820, 830))
    after = status_of(follower.poll(), LogQuestion(total_steps=2000))
    assert after.step == 830
    assert after.left_s.p50 == pytest.approx(1170.0, rel=0.02)
    assert after.pace.downtime_s == pytest.approx(3800.0, rel=0.02)
    assert any("went back once" in remark for remark in after.remarks)


def accuracies(values, *, metric="accuracy", split="validation"):
    series = Series(name=metric, metric=metric, split=split, steps=STEPS, values=np.asarray(values, float))
    return Log(path="run.csv", format="csv", series=(series,))


RISING = 0.95 - 0.8 * (STEPS / 10.0) ** -0.5


@pytest.mark.parametrize("metric", ["accuracy", "f1", "auc", "map50", "top5", "bleu", "rouge_l", "iou", "reward"])
def test_metrics_that_are_better_when_higher_rise_and_do_not_diverge(metric):
    scale = {"bleu": 40.0, "rouge_l": 100.0, "reward": 300.0}.get(metric, 1.0)
    offset = -200.0 if metric == "reward" else 0.0
    log = accuracies(scale * RISING + offset, metric=metric)
    high, low = (status_of(log, LogQuestion(metric=metric, target=scale * goal + offset)) for goal in (0.94, 0.3))
    assert high.curve.is_rising
    assert not high.warnings
    assert high.arrival.steps.p50 > 1000
    assert (low.arrival.probability, low.arrival.steps.p50 < 100) == (1.0, True)
    assert high.curve.predict(1000.0) == pytest.approx(scale * RISING[-1] + offset, rel=0.02)


def test_a_metric_that_should_rise_and_falls_is_diverging():
    (told,) = status_of(accuracies(RISING[::-1], metric="f1"), LogQuestion(metric="f1")).warnings
    assert told.startswith("Diverging: 'f1' falls")


@pytest.mark.parametrize(
    ("metric", "scale", "target", "meant"),
    [("accuracy", 1.0, 92, 0.92), ("top5", 1.0, 92, 0.92), ("bleu", 40.0, 0.3, 30.0), ("accuracy", 1.0, 0.92, 0.92)],
)
def test_a_target_in_percent_and_one_as_a_fraction_are_the_same(metric, scale, target, meant):
    status = status_of(accuracies(scale * RISING, metric=metric), LogQuestion(metric=metric, target=target))
    assert status.arrival.target == pytest.approx(meant)
    assert any("is read as" in remark for remark in status.remarks) == (target != meant)


@pytest.mark.parametrize("target", [-0.1, 120.0])
def test_an_accuracy_that_cannot_be_is_no_target(target):
    with pytest.raises(InputError, match="goes from 0 to 1, or to 100 in percent"):
        status_of(accuracies(RISING), LogQuestion(metric="accuracy", target=target))


def test_validation_comes_before_training_whatever_is_asked():
    few = STEPS[::10]
    more = tuple(
        Series(name=f"val_{metric}", metric=metric, split="validation", steps=few, values=np.linspace(*ends, len(few)))
        for metric, ends in (("loss", (2.0, 1.0)), ("accuracy", (0.2, 0.5)))
    )
    train = Series(name="acc", metric="accuracy", split="train", steps=STEPS, values=RISING)
    log = log_of(more=(train, *more))
    asked = [
        LogQuestion(),
        LogQuestion(metric="loss"),
        LogQuestion(metric="accuracy"),
        LogQuestion(metric="accuracy", split="train"),
    ]
    assert [status_of(log, one).series.name for one in asked] == ["val_loss", "val_loss", "val_accuracy", "acc"]


@pytest.mark.parametrize(
    "asked", [{"family": "optimus"}, {"learning_rate": "cosine"}], ids=["a family", "a learning rate"]
)
def test_a_run_that_is_continued_as_others_went_takes_nothing_else(asked):
    with pytest.raises(InputError, match="takes no family and no learning rate"):
        LogQuestion(like=(log_of(),), **asked)


def test_the_law_of_optimus_knows_no_learning_rate():
    with pytest.raises(InputError, match="has no learning rate"):
        LogQuestion(family="optimus", learning_rate="cosine")
    assert status_of(log_of(), LogQuestion(family="optimus", total_steps=4000)).end.p50 < 1.5


def test_words_of_a_learning_rate_wait_for_the_steps_of_an_epoch():
    assert status_of(log_of(), LogQuestion(n_epochs=90, learning_rate="cosine")).end is None
    assert status_of(log_of(steps_per_epoch=100.0), LogQuestion(n_epochs=90, learning_rate="cosine")).end is not None


def test_a_silent_run_whose_next_row_would_be_behind_its_end_is_over():
    """It logs every 10th step from 0 on: the last of 1,010 steps has no row."""
    assert not status_of(log_of(), LogQuestion(total_steps=1010)).is_over
    assert status_of(log_of(), LogQuestion(total_steps=1010), silent_s=5000.0).is_over
    assert not status_of(log_of(), LogQuestion(total_steps=1020), silent_s=5000.0).is_over


@pytest.mark.parametrize("asked", [{"total_steps": 500}, {"n_epochs": 5}], ids=["in steps", "in epochs"])
def test_a_run_that_went_on_beyond_its_length_ends_with_its_log(asked):
    status = status_of(log_of(steps_per_epoch=100.0), LogQuestion(target=1.5, **asked))
    told = "The log goes on to step 1,000, beyond the length of 500 steps: the run is assumed to end there."
    assert told in status.remarks
    assert (status.total_steps, status.progress, status.is_over) == (1000.0, 1.0, True)
    assert status.end.p10 == status.end.p50 == status.end.p90 == falling()[-1]
    assert status.arrival.probability == 1.0  # reached at step 640


def test_an_evaluation_that_has_reached_the_target_settles_it():
    """One value is enough, as in records of time to accuracy, although those around it are lower."""
    values = np.full(len(STEPS), 0.70) + 0.001 * np.sin(STEPS)
    values[60] = 0.76
    there = status_of(accuracies(values), LogQuestion(metric="accuracy", target=0.75, total_steps=4000)).arrival
    assert (there.probability, there.steps.p90) == (1.0, STEPS[60])


def test_a_run_that_is_over_has_reached_its_target_or_not():
    values = np.minimum(RISING, 0.80)
    missed = status_of(accuracies(values), LogQuestion(metric="accuracy", target=0.801, total_steps=1000)).arrival
    assert (missed.probability, missed.steps.p10) == (0.0, np.inf)
    there = status_of(accuracies(values), LogQuestion(metric="accuracy", target=0.799, total_steps=1000)).arrival
    assert there.probability == 1.0
    assert there.steps.p90 <= 1000


def test_noise_of_single_batches_does_not_reach_a_target():
    noisy = falling() + 0.3 * np.random.default_rng(3).normal(size=len(STEPS))
    assert status_of(log_of(noisy), LogQuestion(target=1.25, total_steps=1000)).settled.reached_step is None
    assert status_of(log_of(noisy), LogQuestion(target=2.0, total_steps=1000)).settled.reached_step < 600


def test_what_was_not_reached_yet_is_not_reached_in_the_past():
    there = status_of(log_of(np.full(len(STEPS), 2.5)), LogQuestion(target=2.4, total_steps=2000)).arrival
    assert 0.0 < there.probability < 0.5
    assert there.steps.p10 >= 1000


def test_a_single_batch_does_not_reach_a_target():
    values = falling()
    values[50] = 0.5
    assert status_of(log_of(values), LogQuestion(target=0.6, total_steps=1200)).arrival.probability < 0.1


def test_a_target_of_a_run_with_loss_and_accuracy_tells_of_which_it_is():
    log = log_of(more=accuracies(RISING).series)
    told = "The target 0.92 is read as one of 'loss': for an accuracy, name that metric."
    assert told in status_of(log, LogQuestion(target=0.92)).remarks
    for asked in (LogQuestion(target=0.92, metric="loss"), LogQuestion(target=0.92, metric="accuracy"), LogQuestion()):
        assert told not in status_of(log, asked).remarks


@pytest.mark.parametrize(("target", "is_told"), [(0.5, True), (92.0, True), (1.7, False), (120.0, False)])
def test_only_a_target_that_may_be_an_accuracy_asks_which_one_is_meant(target, is_told):
    log = log_of(more=accuracies(RISING).series)
    told = any("for an accuracy, name that metric" in one for one in status_of(log, LogQuestion(target=target)).remarks)
    assert told is is_told


def test_which_way_is_better_is_told_where_nobody_knows():
    told = "'tomato' is assumed to be better when lower."
    assert told in status_of(accuracies(RISING, metric="tomato"), LogQuestion(metric="tomato")).remarks
    assert not status_of(log_of(), LogQuestion(learning_rate="constant")).remarks


def test_a_run_is_laid_over_others_as_soon_as_the_steps_of_an_epoch_are_known():
    """In the first epoch a length in epochs is no number of steps yet: that ends no watch."""
    asked = LogQuestion(n_epochs=40, like=(log_of(),), target=1.3)
    early = status_of(log_of(steps=STEPS[:40]), asked)
    told = "The number of steps per epoch is not known yet: once it is, the run is continued like the others."
    assert told in early.remarks
    assert (early.curve, early.end, early.arrival) == (None, None, None)
    later = status_of(log_of(steps=STEPS[:40], steps_per_epoch=25.0), asked)
    assert told not in later.remarks
    assert later.end.p50 == pytest.approx(falling()[-1], rel=0.05)


def test_an_earlier_run_that_is_too_short_is_refused_by_name():
    with pytest.raises(InputError, match=r"'run\.csv' has 3 finite points of 'loss', but a run to compare with"):
        status_of(log_of(), LogQuestion(total_steps=2000, like=(log_of(steps=STEPS[:3]),)))
