"""Values as people type them: what is read, what is refused, and that a default reads as itself."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.options import typed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (typed.COUNT, "1281167", 1_281_167),
        (typed.COUNT, "1_281_167", 1_281_167),
        (typed.COUNT, "15T", 15 * 10**12),
        (typed.COUNT, "1.5b", 1_500_000_000),
        (typed.COUNT, "300 k", 300_000),
        (typed.DURATION, "1d12h", 129_600),
        (typed.DURATION_OR_NONE, "0", 0),
        (typed.USD, "$1,500.50", 1500.5),
        (typed.SHARE, "5%", 0.05),
        (typed.SHARE, "0.05", 0.05),
        (typed.ACCURACY, "92%", 0.92),
        (typed.WHOLE_NUMBERS, "4,1-3", [1, 2, 3, 4]),
        (typed.NUMBERS_IN_ORDER, "64,32,64", [64, 32]),
        (typed.DOUBLING, "100:500", [100, 200, 400, 500]),
        (typed.NAMES, "ddp, fsdp", ["ddp", "fsdp"]),
        (typed.MEGABYTES_PER_S, "131", 131e6),
    ],
)
def test_what_people_type_is_read(kind, text, value):
    assert kind.of(text, "--x") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (typed.COUNT, "many"),
        (typed.COUNT, "1.5"),
        (typed.COUNT, "9" * 5000),
        (typed.COUNT, "1e400"),
        (typed.DURATION, "12"),
        (typed.DURATION, "0h"),
        (typed.USD, "nan"),
        (typed.USD, "inf"),
        (typed.SHARE, "150%"),
        (typed.WHOLE_NUMBERS, "0"),
        (typed.WHOLE_NUMBERS, "1-99999999"),
        (typed.NUMBERS_IN_ORDER, "8;16"),
        (typed.DOUBLING, "256:128"),
        (typed.DOUBLING, "1" * 5000 + ":2"),
        (typed.NUMBER, "1e999"),
    ],
)
def test_anything_else_is_one_sentence_with_the_flag_and_an_example(kind, text):
    with pytest.raises(InputError) as refused:
        kind.of(text, "--x")
    told = str(refused.value)
    assert told.startswith("--x '")
    assert f"is not {kind.what}: write {kind.such_as}." in told
    assert len(told) < 250


@given(st.text(max_size=12))
def test_no_text_raises_anything_but_that_sentence(text):
    for kind in vars(typed).values():
        if isinstance(kind, typed.Typed):
            with contextlib.suppress(InputError):
                kind.of(text, "--x")


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True).map(sorted))
def test_numbers_that_are_shown_read_as_themselves(numbers):
    assert typed.WHOLE_NUMBERS.of(typed.as_typed(numbers), "--x") == numbers


@given(st.integers(1, 10**6))
def test_a_duration_that_is_shown_reads_as_itself(seconds):
    assert typed.DURATION.of(typed.shown_duration(float(seconds)), "--x") == seconds
