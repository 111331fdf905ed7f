"""What is wrong with a request, in one sentence: which field, what would be right, and what came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from traincast.options.option import declared

_OWN_LABELS = {  # of what a page asks in its own way
    "model": "Model",
    "on": "Device or machine",
    "target": "Target",
    "value": "Target",
    "total_steps": "Steps of the run",
    "usd_per_hour": "USD per hour",
}
_PARTS_OF_A_REQUEST = ("body", "query")
_NO_OBJECT = "The question should be a JSON object, sent with the content type application/json."
_LONGEST = 40
# By pydantic's names for what can be wrong; those that begin alike mean the same.
_RULES = {
    "missing": "is missing",
    "extra_forbidden": "is not a part of this question",
    "greater_than_equal": "should be at least {ge}, not {given}",
    "greater_than": "should be above {gt}, not {given}",
    "less_than_equal": "should be at most {le}, not {given}",
    "literal_error": "should be {expected}, not {given}",
    "string_too_short": "is empty",
    "string_too_long": "should have at most {max_length} letters",
    "too_short": "should have at least {min_length} of them",
    "too_long": "should have at most {max_length} of them, not {actual_length}",
    "int": "should be a whole number, not {given}",
    "float": "should be a number, not {given}",
    "finite_number": "should be a finite number, not {given}",
    "bool": "should be true or false, not {given}",
    "string": "should be text, not {given}",
    "list": "should be a list, not {given}",
    "model": "should be a JSON object, not {given}",
}


def sentence_of(errors: Sequence[Any]) -> str:
    """Of the first error, with the number of the others."""
    first, *others = errors
    more = f" ({len(others)} more fields are wrong.)" if len(others) > 1 else " (1 more field is wrong.)"
    return _sentence(first) + (more if others else "")


def _sentence(error: dict[str, Any]) -> str:
    path = [part for part in error["loc"] if part not in _PARTS_OF_A_REQUEST]
    if error["type"] == "json_invalid":
        return f"The question is not valid JSON: {error['ctx']['error']}, at letter {path[0] if path else 0}."
    if not path:
        return _NO_OBJECT
    rule = _RULES.get(error["type"]) or _RULES.get(error["type"].partition("_")[0], "cannot be {given}")
    limits = {name: _number(value) for name, value in error.get("ctx", {}).items()}
    said = rule.format(given=_shown(error.get("input")), **limits)
    return f"{_name(path)} {said}."


def _name(path: Sequence[Any]) -> str:
    field = ".".join(str(part) for part in path)[:_LONGEST]
    label = _labels().get(next((part for part in reversed(path) if isinstance(part, str)), ""))
    return f"'{field}'" if label is None else f"{label} ({field})"


@cache
def _labels() -> dict[str, str]:
    """As on the page."""
    from traincast.web.questions import FUNCTIONS

    every = [one for function in FUNCTIONS.values() for one in declared(function)]
    return {one.name: one.option.label for one in every if one.option.label} | _OWN_LABELS


def _number(value: Any) -> Any:
    """Limits without a fraction are shown without one."""
    return f"{int(value):,}" if isinstance(value, (int, float)) and value == int(value) else value


def _shown(value: Any) -> str:
    """As JSON, and not all of it where it is long."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
