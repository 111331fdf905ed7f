"""Damage to JSON: values of the wrong kind, keys left out or renamed, depths and sizes nobody writes."""

from __future__ import annotations

import json
import random
from typing import Any

from attack import nasty
from attack.damage_bytes import damaged_bytes

_HOLE = "\x07hole\x07"  # where a value goes that Python cannot write


def damaged_json(data: bytes, rng: random.Random) -> bytes:
    """Of a file that is one JSON document."""
    return damaged_bytes(data, rng) if rng.random() < 0.2 else damaged_document(json.loads(data), rng).encode()


def damaged_json_lines(data: bytes, rng: random.Random) -> bytes:
    """Of a file with a document on each line."""
    lines = data.splitlines()
    for _ in range(rng.choice((1, 1, 3, len(lines)))):
        place = rng.randrange(len(lines))
        try:
            lines[place] = damaged_document(json.loads(lines[place]), rng).encode()
        except (ValueError, RecursionError):  # it is damaged already
            lines[place] = damaged_bytes(lines[place], rng)
    return b"\n".join(lines)


def damaged_document(document: Any, rng: random.Random) -> str:
    """The text of the document after one to three accidents."""
    holes: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        document = _damaged(document, rng, holes)
    text = json.dumps(document)
    for value in holes:
        text = text.replace(json.dumps(_HOLE), value, 1)
    return text


def _damaged(document: Any, rng: random.Random, holes: list[str]) -> Any:
    places = list(_places(document))
    if not places or rng.random() < 0.02:
        return _hole(rng, holes)
    holder, key = rng.choice(places)
    how = rng.random()
    if how < 0.55:
        holder[key] = _hole(rng, holes)
    elif how < 0.7:
        other, name = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[name]))
    elif how < 0.8:
        del holder[key]
    elif how < 0.9 and isinstance(holder, dict):
        holder[rng.choice((key + "x", key.upper(), "", nasty.text(rng)))] = holder.pop(key)
    elif isinstance(holder, list):
        holder[key : key + 1] = [holder[key]] * rng.choice((2, 3, 50))
    else:
        holder[key] = [holder[key]]
    return document


def _hole(rng: random.Random, holes: list[str]) -> str:
    holes.append(rng.choice(nasty.JSON_VALUES))
    return _HOLE


def _places(document: Any) -> Any:
    """Every (dict or list, key) of the document."""
    keys = document.keys() if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])
