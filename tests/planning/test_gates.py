"""Limits for a pipeline: what they say, and when they are broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import InputError
from traincast.planning.gates import Gates, gates_of


@pytest.fixture(scope="module")
def forecast():
    return tc.forecast("resnet18", "T4", 64, n_samples=100_000, n_epochs=10, price_usd_per_hour=1.0)


def test_limits_are_read_as_people_write_them():
    assert gates_of("budget=200,hours=12,memory=90%") == Gates(budget_usd=200, hours=12, memory_fraction=0.9)
    assert gates_of(" hours = 1.5 , budget = $20 , memory = 0.5 ") == Gates(
        budget_usd=20, hours=1.5, memory_fraction=0.5
    )


@given(
    budget=st.none() | st.floats(0.01, 1e6),
    hours=st.none() | st.floats(0.01, 1e4),
    memory=st.none() | st.floats(0.01, 1),
)
def test_what_was_written_is_read_back(budget, hours, memory):
    parts = {"budget": budget, "hours": hours, "memory": memory}
    text = ",".join(f"{name}={value!r}" for name, value in parts.items() if value is not None)
    if text:
        assert gates_of(text) == Gates(budget_usd=budget, hours=hours, memory_fraction=memory)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a limit"),
        ("bugdet=3", "Close names: budget"),
        ("budget", "budget has no value. Write budget=200."),
        ("hours=12,memory=", "memory has no value. Write memory=90%."),
        ("budget=3,budget=4", "budget is given twice"),
        ("hours=soon", "hours should be a number above 0, not 'soon'"),
        ("hours=-1", "hours should be a number above 0"),
        ("hours=nan", "hours should be a number above 0"),
        ("memory=90", "memory should be a share: 90% or 0.9, not '90'"),
        ("budget=5%", "budget should be a number above 0, not '5%'"),
    ],
)
def test_a_limit_that_cannot_be_right_is_one_sentence(text, words):
    with pytest.raises(InputError) as refused:
        gates_of(text)
    assert words in str(refused.value)


def test_one_sentence_for_each_broken_limit(forecast):
    hours, usd = forecast.total_s / 3600, forecast.cost_usd
    assert Gates(budget_usd=1.01 * usd, hours=1.01 * hours, memory_fraction=0.9).broken(forecast) == ()
    broken = Gates(budget_usd=0.99 * usd, hours=0.99 * hours, memory_fraction=0.01).broken(forecast)
    assert [sentence.split(":")[0] for sentence in broken] == ["budget", "hours", "memory"]
    assert "% chance to keep it" in broken[0]
    assert "of the 14.8 GiB usable on T4" in broken[2]


@given(share=st.floats(0.5, 0.999))
def test_the_chance_to_keep_a_broken_limit_is_below_one_half(forecast, share):
    (sentence,) = Gates(hours=share * forecast.total_s / 3600).broken(forecast)
    chance = sentence.rpartition("(")[2]
    assert "less than 1 %" in chance or 0 < int(chance.split()[0]) <= 50


def test_a_limit_on_what_is_not_known_cannot_be_kept_quietly():
    unknown = tc.forecast("resnet18", "T4", 64)
    with pytest.raises(InputError, match=r"limit on budget cannot be checked.*the samples of an epoch and a price"):
        Gates(budget_usd=1).broken(unknown)
    with pytest.raises(InputError, match="limit on hours cannot be checked"):
        Gates(hours=1).broken(unknown)
    assert Gates(memory_fraction=0.9).broken(unknown) == ()


@pytest.mark.parametrize("gates", [Gates(hours=1e6), Gates(budget_usd=1e6), Gates(memory_fraction=1.0)])
def test_a_run_that_does_not_fit_breaks_any_limit(gates):
    large = tc.forecast("resnet50", "T4", 1024, n_samples=100, price_usd_per_hour=1.0)
    assert not large.fits
    (sentence,) = gates.broken(large)
    assert sentence.startswith("memory: it does not fit, ")
    assert sentence.endswith("GiB is over the 14.8 GiB usable on T4.")
    assert Gates().broken(large) == ()


def test_flags_replace_what_a_file_says():
    written, given_ = Gates(budget_usd=1, hours=2), Gates(hours=3, memory_fraction=0.5)
    assert written.override(given_) == Gates(budget_usd=1, hours=3, memory_fraction=0.5)
    with pytest.raises(InputError, match="hours should be a number above 0"):
        Gates(hours=0)
