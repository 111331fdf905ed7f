"""What callers of the public functions pass, checked against the types of their parameters.

A wrong type is the caller's mistake and gets one sentence, whatever lies below; values in the wrong range are told
where they are used. Scalars of numpy become plain numbers, so that results are the same whoever asks.
"""

from __future__ import annotations

import functools
import numbers
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any

from traincast.errors import ParameterError

_LARGEST_INT = 2**63 - 1
# Nothing that is measured is smaller or larger, and products of a few of them stay within what a float holds.
_SMALLEST, _LARGEST = 1e-30, 1e30
_LONGEST_TEXT = 4096  # letters: a path may have as many


def as_annotated(name: str, value: object, annotation: str) -> Any:
    """The value as a plain one of that type, or one sentence why not."""
    kinds = _kinds(annotation)
    for kind in kinds:
        try:
            return _plain(value, kind)
        except _WrongKindError:
            continue
    bad = _first_bad_text(value, kinds)
    if bad is not None:
        raise ParameterError(name, bad, f"give {_right(bad, ['str'])}")
    raise ParameterError(name, value, f"give {_right(value, kinds)}")


def _first_bad_text(value: object, kinds: list[str]) -> str | None:
    """Of a list of texts, the first that no file could hold: the others are not worth quoting."""
    if not _is_list(value) or not any(kind.startswith("Sequence[") and "str" in kind for kind in kinds):
        return None
    return next((item for item in value if isinstance(item, str) and not _can_be_written(item)), None)  # type: ignore[attr-defined]


def _right(value: Any, kinds: list[str]) -> str:
    is_number = isinstance(value, numbers.Real) and not _is_flag(value) and value == value
    if is_number and isinstance(value, numbers.Integral) and ("int" in kinds or "float" in kinds):
        return "a smaller number"
    if is_number and "float" in kinds:
        return f"a number from {_SMALLEST:g} to {_LARGEST:g}"
    if isinstance(value, str) and "str" in kinds:
        is_long = len(value) > _LONGEST_TEXT
        return f"at most {_LONGEST_TEXT:,} letters" if is_long else "text without null characters and lone surrogates"
    if _is_list(value) and any(isinstance(item, str) and not _can_be_written(item) for item in value):
        return f"texts of at most {_LONGEST_TEXT:,} letters without null characters and lone surrogates"
    return " or ".join(_words(kind) for kind in kinds)


@functools.cache
def _kinds(annotation: str) -> list[str]:
    return list(_alternatives(annotation))


class _WrongKindError(Exception):
    """A value that is not of a kind; there may be others to try."""


def _plain(value: Any, kind: str) -> Any:
    head, _, items = kind.partition("[")
    if head in ("Sequence", "Iterable"):
        if not _is_list(value):
            raise _WrongKindError
        alternatives = _kinds(items.removesuffix("]"))
        return [_first(item, alternatives) for item in value]
    if items and head in ("Mapping", "dict"):
        return _mapping(value, items.removesuffix("]"))
    if head == "tuple":
        return _tuple(value, items.removesuffix("]"))
    rule = _RULES.get(head)
    if rule is not None:
        return rule(_only_number(value) if head in _NUMBERS else value)
    if not any(base.__name__ == head for base in type(value).__mro__):
        raise _WrongKindError
    return value


def _first(value: object, kinds: list[str]) -> Any:
    for kind in kinds:
        try:
            return _plain(value, kind)
        except _WrongKindError:
            continue
    raise _WrongKindError


def _mapping(value: object, items: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _WrongKindError
    keys, values = (list(_alternatives(part)) for part in _alternatives(items, ","))
    return {_first(key, keys): _first(item, values) for key, item in value.items()}


def _tuple(value: Any, items: str) -> tuple[Any, ...]:
    """So many values one after the other, in whatever holds them."""
    kinds = [list(_alternatives(item)) for item in _alternatives(items, ",")]
    if not _is_list(value) or len(value) != len(kinds):
        raise _WrongKindError
    return tuple(_first(item, own) for item, own in zip(value, kinds, strict=True))


def _is_list(value: object) -> bool:
    """Values one after the other; an array without dimensions says that it has them, and does not."""
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, Iterable) and isinstance(value, Sized)


def _only_number(value: Any) -> Any:
    """The number in an array or a tensor of no dimension; other values as they are."""
    if isinstance(value, numbers.Number) or getattr(value, "ndim", None) != 0:
        return value
    try:
        return value.item()
    except (AttributeError, RuntimeError, TypeError, ValueError):  # such as a tensor without data
        raise _WrongKindError from None


def _only(is_right: Callable[[Any], bool], become: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], Any]:
    def rule(value: Any) -> Any:
        if not is_right(value):
            raise _WrongKindError
        return become(value)

    return rule


def _is_flag(value: object) -> bool:
    """Also one of numpy, which is not imported for this."""
    return isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"))


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not _is_flag(value) and abs(int(value)) <= _LARGEST_INT


def _is_finite(value: object) -> bool:
    if not isinstance(value, numbers.Real) or _is_flag(value):
        return False
    try:
        return value == 0 or _SMALLEST <= abs(float(value)) <= _LARGEST
    except OverflowError:  # a whole number that no float holds
        return False


def _can_be_written(text: object) -> bool:
    """No file, no log and no page can hold a null character or half of a surrogate pair."""
    if not isinstance(text, str) or "\0" in text or len(text) > _LONGEST_TEXT:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


_NUMBERS = ("int", "float")
_RULES: dict[str, Callable[[Any], Any]] = {
    "Any": lambda value: value,
    "ArrayLike": lambda value: value,  # of these two, whoever uses them says what is wrong
    "LearningRate": lambda value: value,
    "None": _only(lambda value: value is None),
    "bool": _only(_is_flag, bool),
    "int": _only(_is_whole, int),
    "float": _only(_is_finite, lambda value: int(value) if isinstance(value, numbers.Integral) else float(value)),
    "str": _only(lambda value: isinstance(value, str) and _can_be_written(value), str),
    "Path": _only(lambda value: isinstance(value, os.PathLike) and _can_be_written(os.fspath(value))),
    "Callable": _only(callable),
    "Progress": _only(callable),
    "Policy": _only(lambda value: not isinstance(value, str) and hasattr(value, "decide")),  # a protocol has no class
    "Mapping": _only(lambda value: isinstance(value, Mapping)),
    "dict": _only(lambda value: isinstance(value, Mapping)),
}
_WORDS = {
    "None": "None",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "Path": "a path",
    "Callable": "a function",
    "Progress": "a function",
    "Machines": "Machines",
    "Policy": "a policy",
    "Mapping": "a dictionary",
    "dict": "a dictionary",
    "Log": "a log",
}


_PLURALS = {
    "int": "whole numbers",
    "float": "numbers",
    "str": "texts",
    "Path": "paths",
    "Log": "logs",
    "Policy": "policies",
}


def _words(kind: str) -> str:
    head, _, items = kind.partition("[")
    if head in ("Sequence", "Iterable"):
        inside = [item for item in _alternatives(items.removesuffix("]")) if item != "None"]
        return f"a list of {' or '.join(_plural(item) for item in inside)}"
    return _WORDS.get(head, f"a {head}")


def _plural(kind: str) -> str:
    return "pairs" if kind.startswith("tuple[") else _PLURALS.get(kind, f"{kind}s")


def _alternatives(annotation: str, mark: str = "|") -> Iterator[str]:
    """'str | Sequence[str | int] | None' has three; other marks part what a type holds: 'str, int'."""
    depth, start = 0, 0
    for place, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == mark and depth == 0:
            yield annotation[start:place].strip()
            start = place + 1
    yield annotation[start:].strip()
