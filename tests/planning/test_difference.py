"""Two forecasts of one job side by side."""

import pytest

import traincast as tc
from traincast.api.forecasts import answer
from traincast.errors import FileFormatError
from traincast.planning.difference import difference_of
from traincast.report.json_ import plain


def told(batch=64, price=1.0, samples=10_000, **options):
    forecast = tc.forecast("resnet18", "T4", batch, n_samples=samples, price_usd_per_hour=price, **options)
    return plain(answer(forecast, region="world").to_dict())


def test_time_and_money_make_the_headline():
    before = told()
    after = {**before, "total_s": 1.18 * before["total_s"], "cost_usd": before["cost_usd"] + 42}
    found = difference_of(before, after, source="a.json")
    assert found.headline == "+18.0 % time, +$42.00"
    assert difference_of(after, before, source="a.json").headline == "-15.3 % time, -$42.00"


def test_nothing_changed_is_said():
    found = difference_of(told(), told(), source="a.json")
    assert found.headline == "the same time, the same cost"
    assert found.settings == ()
    assert all(change.difference == 0 for change in found.numbers)


def test_settings_that_differ_are_listed():
    found = difference_of(told(), told(batch=128, precision="amp-fp16"), source="a.json")
    assert found.settings == (("batch_size", 64, 128), ("precision", "fp32", "amp-fp16"))
    data = found.to_dict()
    assert data["settings"]["batch_size"] == {"before": 64, "after": 128}
    assert data["numbers"]["total_s"]["relative"] < 0


def test_another_price_grid_and_site_are_settings_too():
    rented = tc.forecast("resnet18", "p3.2xlarge", 64, n_samples=10_000)
    before, after = answer(rented, region="Germany"), answer(rented, region="France", pue=1.5)
    found = difference_of(plain(before.to_dict()), plain(after.to_dict()), source="a.json")
    assert [name for name, _, _ in found.settings] == ["pue", "grid"]
    dearer = {**plain(before.to_dict()), "run_price_usd_per_hour": 9.0}
    found = difference_of(plain(before.to_dict()), dearer, source="a.json")
    assert found.settings == (("run_price_usd_per_hour", 3.06, 9.0),)  # of the machine, though no price was given


def test_another_way_to_the_target_is_told_though_the_run_is_as_long():
    before = {**told(), "to_target": way(0.75, updates=1000, seconds=100.0)}
    after = {**told(), "to_target": way(0.77, updates=1500, seconds=150.0)}
    found = difference_of(before, after, source="a.json")
    assert found.headline == "the same time, the same cost, +50.0 % time to the target"
    assert found.settings == (("target", 0.75, 0.77),)
    changes = {change.name: change.difference for change in found.numbers}
    assert (changes["updates_to_target"], changes["to_target_s"]) == (500, 50)
    never = {**told(), "to_target": {**way(0.9, updates=1, seconds=1.0), "total_s": {"p50": None}}}
    (lost,) = [one for one in difference_of(before, never, source="a.json").numbers if one.name == "to_target_s"]
    assert (lost.before, lost.after, lost.difference) == (100, None, None)


def test_a_target_that_only_one_of_both_has_is_a_setting():
    found = difference_of(told(), {**told(), "to_target": way(0.75, updates=10, seconds=1.0)}, source="a.json")
    assert found.settings == (("target", None, 0.75), ("metric", None, "accuracy"))


def way(target, *, updates, seconds):
    """As `ToTarget.to_dict` tells it, of a run without a price."""
    return {
        "target": target,
        "metric": "accuracy",
        "updates": {"p50": updates},
        "total_s": {"p50": seconds},
        "cost_usd": None,
    }


def test_without_a_length_the_step_makes_the_headline():
    found = difference_of(told(samples=None), told(samples=None, precision="amp-fp16"), source="a.json")
    assert found.headline.endswith(" % time")
    assert found.headline.startswith("-")
    assert {change.name: change.difference for change in found.numbers}["total_s"] is None


@pytest.mark.parametrize("content", [{}, {"step_s": "soon", "bound_by": "x"}, {"forecasts": []}, {"step_s": True}])
def test_another_file_is_refused(content):
    with pytest.raises(FileFormatError, match=r"a\.json is not what 'traincast forecast --json' prints for one choice"):
        difference_of(content, told(), source="a.json")


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_s": 10**400},
        {"total_s": float("nan")},
        {"cost_usd": float("inf")},
        {"grid": True},
        {"to_target": [1]},
        {"to_target": {"updates": 3}},
    ],
)
def test_an_earlier_forecast_with_values_of_other_kinds_is_none(wrong):
    with pytest.raises(FileFormatError, match=r"^a\.json is not what 'traincast forecast --json' prints"):
        difference_of({**told(), **wrong}, told(), source="a.json")
