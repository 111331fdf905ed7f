"""Every table of shares adds up to what it is a table of, and headlines name its largest row, for every strategy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.api.forecasts import answer
from traincast.forecasting.by_kind import predicted_by_kind
from traincast.planning.advice import Advice
from traincast.planning.gap import explain_gap
from traincast.views.answer_rows import bound_table
from traincast.views.explain import document_of as explained
from traincast.views.forecast import document_of as told

STRATEGIES = ("ddp", "dp", "mirrored", "ps:1", "ps:4", "ps-async:2", "fsdp", "zero1", "zero2", "zero3")
SPLITS = ({"tensor_parallel": 4}, {"pipeline_parallel": 4}, {"tensor_parallel": 2, "pipeline_parallel": 2})


@st.composite
def runs(draw):
    """A model at a place, and options that go together."""
    options = {
        "strategy": draw(st.sampled_from(STRATEGIES)),
        "accumulation_steps": draw(st.sampled_from([1, 4])),
        "compiled": draw(st.booleans()),
        "optimizer": draw(st.sampled_from(["sgd", "adamw"])),
        "input_samples_per_s": draw(st.sampled_from([None, 50.0, 2000.0])),
    }
    model, place = draw(st.sampled_from(["resnet18", "gpt2"])), draw(st.sampled_from(["T4", "4xT4", "8xT4"]))
    if model == "gpt2" and place != "T4" and draw(st.booleans()):
        options |= {"strategy": "ddp", **draw(st.sampled_from(SPLITS))}
    if options["strategy"] not in ("dp", "mirrored") and draw(st.booleans()):
        place = "2x4xT4@10Gb/s"
    return model, place, draw(st.sampled_from([8, 64])) * options["accumulation_steps"] * 8, options


def gap_of(found):
    return explain_gap(found, predicted_by_kind(found.question), None)


def shares(document, title):
    """The first column and the shares of a table whose title starts so."""
    (table,) = [one for one in document.tables if one.title.startswith(title)]
    place = next(i for i, column in enumerate(table.columns) if column.header == "share")
    return {row[0]: row[place] for row in table.rows}


@settings(max_examples=30)
@given(run=runs())
def test_the_shares_of_a_forecast_and_of_its_explanation_add_up(run):
    model, place, batch, options = run
    found = tc.forecast(model, place, batch, **options)
    gap = gap_of(found)
    by_bound = shares(told([answer(found)]), "A step by what bounds it")
    explanation = explained(gap)
    assert sum(found.bound_s.values()) == pytest.approx(found.step_s)
    assert min(found.bound_s.values()) >= -1e-12
    assert sum(by_bound.values()) == pytest.approx(1, abs=6 * 0.0005)  # what is less than that is not shown
    assert shares(explanation, "A step by what bounds it") == by_bound
    assert sum(shares(explanation, "By kind of work").values()) == pytest.approx(1)
    phases = shares(explanation, "By phase")
    assert phases.pop("step") == 1.0
    assert sum(phases.values()) == pytest.approx(1)

    largest = max(by_bound, key=by_bound.get)
    assert largest.removesuffix(" bubble") == found.bound_by
    assert f"Bound by {found.bound_by}" in told([answer(found)]).verdict.replace("by the ", "by ")


@settings(max_examples=40)
@given(run=runs())
def test_the_ops_of_a_device_add_up_to_what_it_works_and_waits_for_its_host(run):
    model, place, batch, options = run
    found = tc.forecast(model, place, batch, **options)
    of_ops = sum(one.work.seconds for one in Advice(found).ops)
    assert sum(one.work.device_s for one in Advice(found).ops) == pytest.approx(found.device_s)
    assert of_ops <= found.step_s * (1 + 1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_parts_of_a_scaled_step_add_up_and_its_bound_is_the_largest(strategy):
    scaling = tc.scale("resnet18", "T4", [1, 2, 4, 8], batch_size=256, strategy=strategy, input_samples_per_s=3000)
    for point in (*scaling.strong.points, *scaling.weak.points):
        row = point.to_dict()
        parts = row["compute_s"] + row["exposed_communication_s"] + row["input_wait_s"]
        assert parts == pytest.approx(row["step_s"])
        assert row["bound_by"] == max(point.forecast.bound_s, key=point.forecast.bound_s.get)


@pytest.mark.parametrize(("strategy", "share"), [("fsdp", 1 / 8), ("zero1", 1 / 8), ("ps:2", 0.0)])
def test_an_update_that_others_do_is_divided_in_the_table_of_kinds_as_it_is_in_the_step(strategy, share):
    whole, divided = (tc.forecast("gpt2", "8xA100-SXM4-80GB", 8, strategy=name) for name in ("ddp", strategy))
    (update_s,) = [row.predicted_s for row in gap_of(whole).kinds if row.name == "optimizer"]
    assert sum(row.predicted_s for row in gap_of(divided).kinds) == pytest.approx(divided.step_s)
    assert sum(row.predicted_s for row in gap_of(divided).kinds if row.name == "optimizer") == share * update_s
    assert divided.device_s == pytest.approx(whole.device_s - (1 - share) * update_s)


def test_a_step_of_which_communication_is_the_largest_part_is_bound_by_it():
    found = tc.forecast("vgg16", "2x8xV100-SXM2-16GB@10Gb/s", 512, precision="amp-fp16")
    shown = bound_table(found.bound_s).rows[0]
    assert shown[0] == found.bound_by == "communication"


def test_a_pipeline_that_mostly_waits_for_its_stages_is_bound_by_its_bubble():
    found = tc.forecast("gpt2", "8xA100-SXM4-80GB", 8, pipeline_parallel=8, precision="amp-bf16")
    assert found.bound_by == "pipeline"
    assert bound_table(found.bound_s).rows[0][0] == "pipeline bubble"
    assert "Stages mostly wait for each other" in told([answer(found)]).notes[0]


def test_where_the_loader_sets_the_pace_no_faster_device_is_recommended():
    slow = tc.forecast("resnet50", "T4", 64, input_samples_per_s=0.9 * tc.forecast("resnet50", "T4", 64).samples_per_s)
    assert slow.bound_by == "compute"
    assert "only a faster one would help" in told([answer(slow)]).notes[0]
