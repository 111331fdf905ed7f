"""Two forecasts of one job side by side."""

import pytest

import traincast as tc
from traincast.api.answering import answer
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


def test_without_a_length_the_step_makes_the_headline():
    found = difference_of(told(samples=None), told(samples=None, precision="amp-fp16"), source="a.json")
    assert found.headline.endswith(" % time")
    assert found.headline.startswith("-")
    assert {change.name: change.difference for change in found.numbers}["total_s"] is None


@pytest.mark.parametrize("content", [{}, {"step_s": "soon", "bound_by": "x"}, {"forecasts": []}, {"step_s": True}])
def test_another_file_is_refused(content):
    with pytest.raises(FileFormatError, match=r"a\.json is not what 'traincast forecast --json' prints for one choice"):
        difference_of(content, told(), source="a.json")
