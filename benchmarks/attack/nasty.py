"""Values that programs do not expect in a file, as JSON, TOML and tables can spell them."""

from __future__ import annotations

import random

NUMBERS = (
    "nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "1e308", "-1e308", "1e309", "1e-320", "-0.0", "0", "-1", "1",
    "1e19", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1_000", "0x10", "1,5",
    "9" * 400, "-" + "9" * 400, "1" * 5000, "0." + "1" * 5000, "1e99999", "1e-99999", "٣", "½", "1e", "--1", "+",
)  # fmt: skip
WORDS = (
    "", " ", "null", "None", "true", "False", "x", "é", "\u202e", "😀", "\0", "\ufeff", "a" * 5000, "../..", "=1+1",
    "<b>", "%s%n", "{}", "{0}", '"', "'", ",", ";", "\t", "//", "T4", "loss", "step",
)  # fmt: skip
JSON_VALUES = (
    "null", "true", "false", "[]", "{}", "[[]]", "[null]", '""', '"x"', '"\\ud800"', '"\\u0000"', "NaN", "Infinity",
    "-Infinity", "-1", "0", "1.5", "1e308", "-1e308", "1e999", "9" * 400, "-" + "9" * 400, "1" * 5000,
    '"9999999999999999999"', "[1, 2, 3]", '{"a": 1}', "[" * 500 + "]" * 500, "[" * 100_000, '"' + "a" * 5000 + '"',
)  # fmt: skip
TOML_VALUES = (
    '""', '"x"', "0", "-1", "1.5", "nan", "inf", "-inf", "1e308", "-1e308", "9" * 400, "1" * 5000, "true", "[]", "[1]",
    "{}", "{a = 1}", "2026-11-16", "07:32:00", "1979-05-27T07:32:00Z", '"\\u0000"', '"\\ud800"', "'''\n'''",
    "[" * 500 + "]" * 500, "[" * 5000, '"T4"', '"2xT4"', '"' + "a" * 5000 + '"', "0xffffffffffffffffff",
)  # fmt: skip
BYTES = (
    b"\0",
    b"\0" * 4096,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x80",
    b"\r",
    b"\n\n",
    b"\x1a",
    b"\x1b[31m",
)


def number(rng: random.Random) -> str:
    return rng.choice(NUMBERS)


def text(rng: random.Random) -> str:
    return rng.choice(NUMBERS) if rng.random() < 0.6 else rng.choice(WORDS)
