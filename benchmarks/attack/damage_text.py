"""Damage to files that are text in lines: cells, numbers, names, lines, columns and encodings."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from attack import nasty
from attack.damage_bytes import damaged_bytes

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w+")
_TOML_LINE = re.compile(r"^(\s*[\w.-]+\s*=\s*)(.+)$", re.MULTILINE)
Accident = Callable[[str, random.Random], str]


def damaged_lines(data: bytes, rng: random.Random) -> bytes:
    """Of a log or a table."""
    return _damaged(data, rng, _ON_LINES)


def damaged_toml(data: bytes, rng: random.Random) -> bytes:
    """Of a TOML file."""
    return _damaged(data, rng, _ON_TOML)


def _damaged(data: bytes, rng: random.Random, accidents: tuple[Accident, ...]) -> bytes:
    if rng.random() < 0.25:
        return damaged_bytes(data, rng)
    text = data.decode()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(accidents)(text, rng)
    return _encoded(text, rng)


def _encoded(text: str, rng: random.Random) -> bytes:
    coding = rng.choice(("utf-16", "utf-8-sig", "latin-1")) if rng.random() < 0.1 else "utf-8"
    return text.encode(coding, "replace")


def _one(pattern: re.Pattern[str], make: Callable[[random.Random], str]) -> Accident:
    """One of the places where the pattern fits is written anew."""

    def accident(text: str, rng: random.Random) -> str:
        places = [found.span() for found in pattern.finditer(text)]
        if not places:
            return text
        first, last = rng.choice(places)
        return text[:first] + make(rng) + text[last:]

    return accident


def _all_numbers(text: str, rng: random.Random) -> str:
    """Every number of the file, or about half of them, is the same."""
    number, share = nasty.number(rng), rng.choice((0.2, 0.5, 1.0))
    return _NUMBER.sub(lambda found: number if rng.random() < share else found.group(), text)


def _swap_words(text: str, rng: random.Random) -> str:
    words = _WORD.findall(text)
    return text.replace(rng.choice(words), rng.choice(words), rng.choice((1, -1))) if words else text


def _on_lines(change: Callable[[list[str], random.Random], list[str]]) -> Accident:
    return lambda text, rng: "\n".join(change(text.split("\n"), rng))


def _shuffle(lines: list[str], rng: random.Random) -> list[str]:
    return [*lines[:1], *rng.sample(lines[1:], len(lines) - 1)] if rng.random() < 0.5 else rng.sample(lines, len(lines))


def _double(lines: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(lines))
    return [*lines[: place + 1], *[lines[place]] * rng.choice((1, 2, 50)), *lines[place + 1 :]]


def _drop(lines: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(lines))
    return lines[:place] + lines[place + rng.choice((1, 2, 20)) :]


def _only_some(lines: list[str], rng: random.Random) -> list[str]:
    return lines[: rng.choice((1, 2, 3))]


def _twice(lines: list[str], rng: random.Random) -> list[str]:
    return lines + lines


def _long_line(lines: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(lines))
    return [*lines[:place], rng.choice((",", "1,", "a", "[", '"', " ")) * rng.choice((2000, 200_000)), *lines[place:]]


def _column(lines: list[str], rng: random.Random) -> list[str]:
    """A column of a table: left out, written twice, or the same in every row."""
    mark = next((mark for mark in (",", "\t", ";") if mark in lines[0]), ",")
    rows = [line.split(mark) for line in lines]
    place, how, cell = rng.randrange(len(rows[0])), rng.randrange(3), nasty.text(rng)
    for row in rows[0 if how < 2 else 1 :]:
        if place < len(row):
            row[place : place + 1] = ([], [row[place]] * 2, [cell])[how]
    return [mark.join(row) for row in rows]


def _other_mark(text: str, rng: random.Random) -> str:
    return text.replace(",", rng.choice((";", "\t", " ", ",,", ", ")))


def _other_ends(text: str, rng: random.Random) -> str:
    return text.replace("\n", rng.choice(("\r", "\r\n", "\x0b", "\u2028", "\n\n")))


def _toml_value(text: str, rng: random.Random) -> str:
    places = [found.span(2) for found in _TOML_LINE.finditer(text)]
    if not places:
        return text
    first, last = rng.choice(places)
    return text[:first] + rng.choice(nasty.TOML_VALUES) + text[last:]


_CELL = re.compile(r"[^,\n]+")
_ON_LINES: tuple[Accident, ...] = (
    _one(_NUMBER, nasty.number),
    _one(_NUMBER, nasty.number),
    _one(_CELL, nasty.text),
    _one(_CELL, nasty.text),
    _one(_WORD, nasty.text),
    _all_numbers,
    _swap_words,
    _other_mark,
    _other_ends,
    *map(_on_lines, (_shuffle, _double, _drop, _only_some, _twice, _long_line, _column, _column)),
)
_ON_TOML: tuple[Accident, ...] = (
    *(_toml_value,) * 5,
    _one(_NUMBER, nasty.number),
    _one(_WORD, nasty.text),
    _swap_words,
    *map(_on_lines, (_shuffle, _double, _drop, _twice)),
)
