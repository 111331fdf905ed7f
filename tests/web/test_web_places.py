"""Places that a request names: any text is a place of the tables or an error, and the disk is never asked."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, UnknownDeviceError
from traincast.hardware.catalog import find_device
from traincast.hardware.device_table import device_toml
from traincast.hardware.run_place import find_place
from traincast.hardware.this_machine import profile_path
from traincast.web.places import device_of, place_of, place_to_scale

_PIECES = st.sampled_from(
    ["4x", "2x", "0x", "T4", "p3.16xlarge", "@", "50Gb/s", "/", "..", ".toml", "this-machine", " of ", "~", "\\", "x"]
)


@pytest.mark.parametrize(
    ("text", "place"),
    [("t4", "T4"), ("4 x t4", "4xT4"), ("2x4xT4@50Gb/s", "2x4xT4@50Gb/s"), ("2xp3.16xlarge", "2xp3.16xlarge")],
)
def test_names_become_those_of_the_tables(text, place):
    assert place_of(text) == place


@given(st.lists(_PIECES | st.text(max_size=6), max_size=6).map("".join))
def test_whatever_is_let_through_is_a_place_without_any_file(text):
    try:
        place = place_of(text)
    except InputError:
        return
    assert "toml" not in place
    assert "this-machine" not in place
    try:
        find_place(place)
    except InputError:
        return  # such as nodes without a link between them


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p3.2xlrage", "No device or machine named 'p3.2xlrage'. Close names: p3.2xlarge"),
        ("A100", "'A100' could mean A100-"),
    ],
)
def test_a_name_that_is_not_known_is_told_what_is_near(text, words):
    with pytest.raises(InputError, match=re.escape(words)) as raised:
        place_of(text)
    assert "--devices" not in str(raised.value)  # which is for those who type commands


def test_the_profile_of_this_machines_gpu_is_not_for_whoever_reaches_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    profile_path(of_gpu=True).write_text(device_toml(find_device("T4")))
    assert find_device("this-gpu").name == "T4"
    with pytest.raises(UnknownDeviceError, match="No device or machine named 'this-GPU'"):
        place_of("this-GPU")


def test_a_count_that_cannot_be_is_told_as_one():
    with pytest.raises(InputError, match="'0xT4': the number of devices should be a whole number from 1"):
        place_of("0xT4")
    with pytest.raises(InputError, match="'99999xT4' has 99,999 devices: the page answers for 1 to 512"):
        place_of("99999xT4")
    with pytest.raises(InputError, match="is not a place"):
        place_of("3 of T4")


def test_a_machine_stands_for_its_device_where_one_is_asked_for():
    assert device_of("p3.16xlarge") == "V100-SXM2-16GB"


@pytest.mark.parametrize(
    ("text", "scaled"), [("T4", "T4"), ("p3.16xlarge", "p3.16xlarge"), ("g4dn.xlarge", "8xg4dn.xlarge")]
)
def test_what_is_scaled_holds_several_devices(text, scaled):
    assert place_to_scale(text) == scaled
