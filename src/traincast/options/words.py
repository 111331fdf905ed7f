"""A question as somebody would type it: for a process of its own that answers it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from traincast.options.option import declared


def words_of(question: Callable[..., Any], values: Mapping[str, Any]) -> Iterator[str]:
    """The words of a command line; what is as usual is left out."""
    for one in declared(question):
        value = values.get(one.name, one.default)
        if value == one.default:
            continue
        if not one.option.is_argument:
            yield one.flag
        if value is not True:
            yield str(value) if one.option.typed is None else one.option.typed.show(value)
