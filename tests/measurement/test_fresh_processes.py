"""The same measurement in several processes, joined."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, MeasurementError
from traincast.measurement.fresh_processes import join, join_summaries, measure_repeatedly
from traincast.measurement.measured import Measurement
from traincast.measurement.statistics import summarise
from traincast.records.environment import Environment

ENVIRONMENT = Environment(
    device="a CPU", device_kind="cpu", host="h", n_threads=1, n_cores=2, versions={}, clocks={}, load_average=0.1
)


def measurement(step_s):
    step = summarise([step_s * factor for factor in (0.98, 0.99, 1.0, 1.01, 1.02)])
    return Measurement(
        model="net",
        batch_size=4,
        optimizer="sgd",
        precision="fp32",
        device="cpu",
        phases={"forward": step},
        step=step,
        environment=ENVIRONMENT,
        page_faults=7.0,
    )


def answers(*steps):
    """What processes say one after the other: a step, an exit code, or after Ctrl-C a tuple of what they had."""
    left = list(steps)

    def run(arguments):
        assert arguments == ["net", "--batch", "4"]
        answer = left.pop(0)
        if isinstance(answer, tuple):  # stopped, with what there was
            return 130, "".join(json.dumps(measurement(step_s).to_dict()) for step_s in answer), ""
        if isinstance(answer, int):
            return answer, "", "Traceback ...\nError: it is broken.\n"
        return 0, json.dumps({**measurement(answer).to_dict(), "forecast": None}), ""

    return run


def repeated(*steps):
    return measure_repeatedly(["net", "--batch", "4"], len(steps), run=answers(*steps))


def test_the_middle_process_gives_the_median_and_the_spread_between_them_the_interval():
    joined = repeated(1.0, 1.1, 1.3)
    assert joined.step_s == pytest.approx(1.1)
    assert (joined.n_steps, joined.n_repeats) == (15, 3)
    low, high = joined.interval("step_s")
    assert low < 1.0
    assert high > 1.3
    assert joined.interval("forward_s") == joined.interval("step_s")
    assert "1.30 x that of the fastest" in joined.warnings[0]


def test_processes_that_agree_leave_the_interval_that_each_has():
    joined, one = repeated(1.0, 1.0, 1.0), measurement(1.0)
    assert joined.interval("step_s") == pytest.approx(one.interval("step_s"), rel=1e-3)
    assert joined.warnings == ()


def test_one_process_is_just_that():
    assert repeated(1.0) == measurement(1.0)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6), st.floats(0.0, 0.2))
def test_a_joined_summary_is_in_order_and_spans_at_least_a_process(medians, noise):
    parts = [summarise([m * math.exp(noise * at) for at in (-2, -1, 0, 1, 2)]) for m in medians]
    joined = join_summaries(parts)
    slack = 1e-9
    assert joined.minimum <= joined.p10 + slack
    assert joined.p10 <= joined.median + slack
    assert joined.median <= joined.p90 + slack
    assert joined.p90 / joined.median >= min(part.p90 / part.median for part in parts) - slack
    assert joined.total == pytest.approx(sum(part.total for part in parts))


def test_processes_further_apart_make_a_wider_interval():
    near, far = repeated(1.0, 1.05), repeated(1.0, 1.5)
    assert far.step.p90 / far.step_s > near.step.p90 / near.step_s


def test_a_process_that_fails_is_told_with_what_the_others_measured():
    with pytest.raises(MeasurementError, match=r"^Process 3 of 3 failed: it is broken\.$") as caught:
        repeated(1.0, 1.1, 2)
    assert caught.value.partial.n_repeats == 2


def test_a_first_process_that_fails_leaves_nothing():
    with pytest.raises(MeasurementError) as caught:
        repeated(2)
    assert caught.value.partial is None


@pytest.mark.parametrize(("reached", "n_kept"), [((), 2), ((1.0,), 3)])
def test_ctrl_c_keeps_the_processes_that_were_done_and_what_the_last_one_had(reached, n_kept):
    joined = repeated(1.0, 1.0, reached, 1.0)
    assert joined.is_partial
    assert joined.n_repeats == n_kept
    assert joined.warnings[0] == "Stopped in process 3 of 4."


def test_ctrl_c_in_the_first_process_keeps_what_that_one_had():
    assert repeated((1.0,), 1.0).is_partial
    with pytest.raises(KeyboardInterrupt):
        repeated((), 1.0)


def test_a_process_that_says_more_than_its_answer_is_one_sentence():
    with pytest.raises(MeasurementError, match="Process 1 of 1 failed: it rained"):
        measure_repeatedly(["net"], 1, run=lambda _: (0, "building ...\n{}", "it rained"))


def test_warnings_say_which_process_they_are_of():
    joined = join([measurement(1.0), replace(measurement(1.0), warnings=("It was busy.",))])
    assert joined.warnings == ("Process 2: It was busy.",)


def test_no_process_is_not_enough():
    with pytest.raises(InputError, match="in 0 processes"):
        measure_repeatedly([], 0)
