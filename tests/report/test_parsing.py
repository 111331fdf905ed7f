"""JSON and TOML of others: depth and length are mistakes of the file, told with the reader's usual error."""

import json
import tomllib

import pytest

from traincast.report.parsing import parse_json, parse_toml


def test_what_is_right_is_read():
    assert parse_json('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert parse_toml('a = [1, 2.5, "x"]') == {"a": [1, 2.5, "x"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ("9" * 5000, "it has a whole number of thousands of digits"),
        ("[1,", "Expecting value"),
    ],
)
def test_json_that_is_too_deep_or_too_long_is_no_json(text, words):
    with pytest.raises(json.JSONDecodeError, match=words):
        parse_json(text)


def test_a_hundred_levels_are_read_and_no_more():
    assert parse_json("[" * 100 + "]" * 100)
    for text in ("[" * 101 + "]" * 101, '{"a": [' * 51 + "]}" * 51):
        with pytest.raises(json.JSONDecodeError, match="it is nested too deeply"):
            parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 5000, "it is nested too deeply"),
        ("a = " + "9" * 5000, "it has a whole number of thousands of digits"),
        ("a = ", "Invalid value"),
    ],
)
def test_toml_that_is_too_deep_or_too_long_is_no_toml(text, words):
    with pytest.raises(tomllib.TOMLDecodeError, match=words):
        parse_toml(text)


def test_bytes_that_are_no_text_stay_what_they_are():
    with pytest.raises(UnicodeDecodeError):
        parse_json(b'{"a": "\xff\xfe\x00"}')
