"""The words of a place, taken apart: one grammar for the engine, the page, job files and simulated clusters."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.hardware.place_text import PlaceText, read_place, whole_number

_PIECES = st.sampled_from(
    ["4x", "2 X ", "0x", "-1.5x", "T4", "8x_H200-SXM_SECURE", "@", "50Gb/s", "own.toml", "3 of ", " of ", "x", " ", "7"]
)
_TEXTS = st.lists(_PIECES | st.text(max_size=4), max_size=6).map("".join)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("T4", PlaceText(name="T4")),
        (" 4 X tesla t4 ", PlaceText(name="tesla t4", counts=("4",))),
        ("2x4xT4 @ 6 GB/s", PlaceText(name="T4", counts=("2", "4"), link="6 GB/s")),
        ("2xp3.16xlarge", PlaceText(name="p3.16xlarge", counts=("2",))),
        ("gpu_8x_a100", PlaceText(name="gpu_8x_a100")),
        ("3 of own.toml", PlaceText(name="own.toml", parts=("3",))),
        ("6 of 2x4xT4@50Gb/s", PlaceText(name="T4", counts=("2", "4"), link="50Gb/s", parts=("6",))),
        ("2x4 racks@home.TOML", PlaceText(name="2x4 racks@home.TOML")),
        ("T4@", PlaceText(name="T4", link="")),
        ("4x", PlaceText(name="", counts=("4",))),
    ],
)
def test_words_of_a_place(text, place):
    assert read_place(text) == place


@given(_TEXTS)
def test_what_is_shown_of_a_place_reads_as_itself(text):
    place = read_place(text)
    assert read_place(str(place)) == place


@given(_TEXTS)
def test_only_white_space_and_the_case_of_an_x_are_lost(text):
    assert "".join(str(read_place(text)).casefold().split()) == "".join(text.casefold().split())


@given(_TEXTS, _TEXTS)
def test_a_number_may_belong_to_a_name_and_no_word_is_lost(text, known):
    place = read_place(text)
    assert str(place.named(lambda name: name == known)) == str(place)


def test_a_number_that_belongs_to_a_name_counts_nothing():
    place = read_place("2x8x_H200-SXM_SECURE").named(lambda name: name == "8x_H200-SXM_SECURE")
    assert (place.counts, place.name) == (("2",), "8x_H200-SXM_SECURE")


@pytest.mark.parametrize("text", ["2xT4", "T4@50Gb/s", "3 of T4", "own.toml"])
def test_more_than_a_name_is_no_name(text):
    place = read_place(text)
    assert not place.is_name
    assert place.is_file == text.endswith("toml")
    assert replace(place, name="T4", counts=(), link=None, parts=()).is_name


@pytest.mark.parametrize("digits", ["0", "-4", "1.5", "1000001", "9" * 400])
def test_a_count_is_a_whole_number(digits):
    with pytest.raises(InputError, match="'4xT4': the number of nodes should be a whole number from 1 to 1,000,000"):
        whole_number(digits, "nodes", "4xT4")
    assert whole_number("4.0", "nodes", "4xT4") == 4
